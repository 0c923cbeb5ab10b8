#pragma once

#include <memory>

#include "runtime/grammar/byte_automaton.hpp"

namespace redline::grammar {

/// A raw text, without quotes and escapes, that a schema for JSON strings allows, and then the end of an element
/// (tools::element_end). The schema's automaton reads the text in its JSON form, so that one automaton decides what is
/// allowed. Where both the text and the end may continue, both are followed; the first complete end counts.
class bound_text final : public byte_automaton {
 public:
  /// `strings` accepts JSON values. Only its strings count, and it must accept at least one.
  explicit bound_text(std::shared_ptr<const byte_automaton> strings) : strings_(std::move(strings)) {}

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override { return is_terminated(s); }
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override;
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  [[nodiscard]] bool is_lost(const automaton_state& s) const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

  /// How many of the last bytes match the beginning of the element's end.
  [[nodiscard]] static std::uint32_t matched(const automaton_state& s) { return s[0]; }

 private:
  [[nodiscard]] bool may_end(const automaton_state& text, step_count& steps) const;

  std::shared_ptr<const byte_automaton> strings_;
};

}  // namespace redline::grammar
