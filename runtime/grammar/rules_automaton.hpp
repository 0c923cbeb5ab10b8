#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/grammar/byte_automaton.hpp"
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
  static constexpr std::size_t positions_max = 1 << 18;
  static constexpr std::size_t ways_max = 1 << 19;  // of all tables: ways to take a byte, and calls
  static constexpr std::size_t heads_max = 4096;    // ways to take a byte where a rule begins
  static constexpr std::size_t compile_steps_max = 2'000'000;
  static constexpr std::size_t work_max = 1 << 13;  // for one byte

  /// Refuses rules that are missing or never end, and grammars beyond the limits, with the rule's name or line.
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
  friend class rules_compiler;
  class reader;
  class step;

  static constexpr std::uint32_t no_loop = UINT32_MAX, no_guard = UINT32_MAX;
  /// A way to take a byte of a set.
  struct head {
    std::uint32_t set = 0;
    std::uint32_t next = 0;  // the place after it
    std::uint32_t run = 0;   // a byte of a literal: where the rest of it begins in literals_
    std::uint32_t run_count = 0;
    std::uint32_t guard = no_guard;  // in guards_: when it may be taken
    bool adds_one = false;           // it begins a character of a measured text
    bool operator==(const head&) const = default;
  };
  struct call {
    std::uint32_t rule = 0;
    std::uint32_t then = 0;  // the place after it
    auto operator<=>(const call&) const = default;
  };
  /// What may follow before the next byte.
  struct ways {
    std::uint32_t first_head = 0, heads = 0;
    std::uint32_t first_call = 0, calls = 0;  // sorted
    byte_set takes;                           // the union of the heads' sets
    const free_text* text = nullptr;          // all of it is taken in one way, and leads to the place text_loop, a loop
    std::uint32_t text_loop = no_loop;
    std::optional<std::uint8_t> exit_byte{};  // except for this byte
  };
  /// Texts in a row of which a number beside the place says what was there, instead of places of their own. `counted`:
  /// from `least` to `most` texts of one kind, and the number is how many. `ordered`: some of several texts, in order;
  /// the number is that of the next one that may be chosen, and texts from `texts` on are others, which may repeat.
  /// `distinct`: from `least` to `most` of several texts, with all that are required; the number is the set of those
  /// chosen, to which others from `texts` on do not count. `measured`: one text of an expression with `least` to `most`
  /// characters; the number is how many there are.
  struct loop {
    enum class kind : std::uint8_t { counted, ordered, distinct, measured };
    kind what = kind::counted;
    std::uint32_t least = 0, most = 0;  // UINT32_MAX means any number, of which `least` are counted
    std::uint32_t texts = 0;
    std::uint32_t required = 0;           // distinct: the set of those
    std::vector<std::uint32_t> limits{};  // ordered: by number, the first required text from there on, or `texts`
    std::uint32_t any_text = no_guard;    // some text may be chosen
    std::uint32_t between = 0;            // the place after one of them where another may begin
    std::uint32_t exit = 0;               // the place after the last

    [[nodiscard]] bool may_exit(std::uint32_t number) const;
    [[nodiscard]] bool is_valid(std::uint32_t number) const;
    /// After the text `chosen`, or after another counted one or character.
    [[nodiscard]] std::uint32_t next(std::uint32_t number, std::uint32_t chosen) const;
  };
  /// Some of these texts of a loop, ascending, may still be chosen. Of a measured text: it can be completed from each
  /// number of characters; where that begins and ends to be so, by turns.
  struct guard {
    std::uint32_t loop = 0;
    std::vector<std::uint32_t> texts;
    [[nodiscard]] std::size_t bytes() const { return sizeof(guard) + texts.capacity() * sizeof(texts[0]); }
  };
  struct place : ways {
    std::uint32_t rule = 0;
    std::uint32_t loop = no_loop;  // of which a text is open here
    bool is_between = false;       // it is loop::between
    bool ends_text = false;        // a text of the loop may end here
    std::uint32_t chosen = 0;      // which
    bool may_end = false;          // its rule may end here
    [[nodiscard]] bool is_only_end() const { return heads == 0 && calls == 0 && loop == no_loop; }
  };

  rules_automaton() = default;
  static automaton_state lost_state();
  [[nodiscard]] bool may_take(std::uint32_t guard, std::uint32_t number) const;
  /// Whether a place of a measured text leads on with this number of characters.
  [[nodiscard]] bool leads_on(const place& p, std::uint32_t number) const;
  /// Calls `see` with the ways to take a byte at a state that may be taken.
  template<class See>
  void each_head(const reader& here, See see) const;
  [[nodiscard]] std::span<const head> heads(const ways& w) const { return {heads_.data() + w.first_head, w.heads}; }
  [[nodiscard]] std::span<const call> calls(const ways& w) const { return {calls_.data() + w.first_call, w.calls}; }

  std::vector<place> places_;
  std::vector<ways> beginnings_;  // by rule: the ways of the rule and of all that it calls before its first byte
  std::vector<head> heads_;
  std::vector<call> calls_;
  std::vector<byte_set> sets_;
  std::vector<loop> loops_;
  std::vector<guard> guards_;
  std::vector<bool> is_markup_;  // by rule
  std::string literals_;
  std::uint32_t root_ = 0;          // the rule of a whole text
  std::uint32_t accept_ = 0;        // the place after it
  bool root_may_be_empty_ = false;  // the empty text is a whole text
};

}  // namespace redline::grammar
