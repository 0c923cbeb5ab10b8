#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/base/result.hpp"
#include "runtime/grammar/automata/byte_automaton.hpp"
#include "runtime/grammar/automata/rule_tables.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// The texts of a grammar in GBNF or Lark (syntax/grammar_rules.hpp), whatever its recursion and however ambiguous it
/// is: Earley's algorithm (1970) over bytes, with rows that do not know their positions.
///
/// A *place* is a point in a rule after a byte or a call: what may follow there up to the next byte is in tables. A
/// *frame* is a row reduced to what the end of a rule asks of it: sorted entries of an awaited rule, the place where
/// its caller goes on, and the frame where that caller began. What the awaited rules call before their first byte is
/// the same wherever they are called, so it is in tables too and not in frames; left recursion therefore makes no
/// cycle of frames. A call at the end of a rule takes over the entries that await its caller, so a list written with
/// its recursion last stays on one frame. A state is the frames in use, oldest first, and the places reached with the
/// frames where their rules began. Equal frames of a state are one frame, so equal futures are mostly equal states.
/// Repetitions of simple parts, and texts of which each may be chosen once, have a number beside their places, in spots
/// and in frames.
///
/// Nothing is dropped: every place and frame leads to a complete text. A state that does not fit in
/// automaton_state::cells_max, or a byte that takes more than work_max steps, is lost (`is_lost`).
class rules_automaton : public byte_automaton {
 public:
  static constexpr std::size_t compile_steps_max = 2'000'000;
  static constexpr std::size_t work_max = 1 << 13;  // for one byte

  /// Refuses rules that are missing or never end, and grammars beyond the limits (rules_compilation), with the rule's
  /// name or line where there is one.
  static result<std::shared_ptr<const rules_automaton>> compile(std::string_view grammar, step_count& steps);
  static result<std::shared_ptr<const rules_automaton>> compile(std::string_view grammar) {
    step_count steps(compile_steps_max);
    return compile(grammar, steps);
  }

  static result<std::shared_ptr<const rules_automaton>> compile(grammar_rules grammar, step_count& steps);
  static result<rules_automaton> make(grammar_rules grammar, step_count& steps);

  [[nodiscard]] automaton_state begin() const override;
  using byte_automaton::advance;
  using byte_automaton::known_run;
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const override;
  [[nodiscard]] byte_set possible_bytes(const automaton_state& s) const override;
  [[nodiscard]] byte_kinds kinds_of_bytes(const automaton_state& s) const override;
  [[nodiscard]] bool is_accepting(const automaton_state& s) const override;
  [[nodiscard]] bool is_terminated(const automaton_state& s) const override;
  [[nodiscard]] bool is_lost(const automaton_state& s) const override;
  [[nodiscard]] std::string_view known_run(const automaton_state& s, step_count& steps) const override;
  [[nodiscard]] free_text_rule free_text_at(const automaton_state& s) const override;
  /// Whether some rule that `s` is in is one of markup (rule::is_markup).
  [[nodiscard]] bool is_markup(const automaton_state& s) const override;
  [[nodiscard]] bool is_free(const automaton_state& s) const override;
  [[nodiscard]] std::size_t size_bytes() const override;
  [[nodiscard]] bool is_valid(const automaton_state& s) const override;

 private:
  class reader;
  class step;
  using head = rule_tables::head;
  using call = rule_tables::call;
  using ways = rule_tables::ways;
  using loop = rule_tables::loop;
  using place = rule_tables::place;
  static constexpr std::uint32_t no_loop = rule_tables::no_loop;

  explicit rules_automaton(rule_tables tables) : tables_(std::move(tables)) {}
  static automaton_state lost_state();
  /// Calls `see` with the ways to take a byte at a state that may be taken.
  template<class See>
  void each_head(const reader& here, See see) const;

  rule_tables tables_;
};

}  // namespace redline::grammar
