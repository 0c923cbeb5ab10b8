#pragma once

#include "runtime/copy/program_machine.hpp"
#include "runtime/grammar/automata/byte_automaton.hpp"

namespace redline::grammar {

/// Edit programs (Liu, "Copy-as-Decode", 2026; see runtime/copy). After each complete copy, the grammar awaits the
/// copied span until `resume` is called.
class copy_grammar final : public byte_automaton {
 public:
  explicit copy_grammar(copy::program_shape shape) : programs_(std::move(shape)) {}

  [[nodiscard]] automaton_state begin() const override { return pack({}, 0); }
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override { return is_terminated(s); }
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override;
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  [[nodiscard]] std::uint32_t unconstrained_tokens(const automaton_state& s) const override;
  void skip_unconstrained_token(automaton_state& s) const override;
  [[nodiscard]] bool awaits_span(const automaton_state& s) const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

  /// Continues at an awaited span. It follows as `tokens_count` unconstrained tokens; 0 means that it was inserted.
  void resume(automaton_state& s, std::uint32_t tokens_count) const;
  [[nodiscard]] copy::program_state unpack(const automaton_state& s) const;

 private:
  [[nodiscard]] static automaton_state pack(const copy::program_state& p, std::uint32_t span_tokens);

  copy::program_machine programs_;
};

}  // namespace redline::grammar
