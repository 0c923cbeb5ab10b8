#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// How many characters a text may have.
struct text_length {
  std::uint32_t least = 0;
  std::uint32_t most = UINT32_MAX;
  bool operator==(const text_length&) const = default;
};

/// A regular expression as a deterministic automaton over the bytes of UTF-8, made by Thompson's construction and the
/// subset construction ("Regular Expression Search Algorithm", 1968; Rabin and Scott, 1959). No state is a dead end:
/// the text can be completed from each.
class regex_dfa {
 public:
  static constexpr std::uint32_t states_max = 1024;
  static constexpr std::uint32_t bytes_without_max = 1 << 15;
  static constexpr std::uint16_t dead = UINT16_MAX;
  static constexpr const char* no_text = "no text matches the expressions and their bounds";  // an error
  static constexpr std::uint64_t compile_steps_max = 1'000'000;                               // about 10 ms

  enum class match : std::uint8_t { whole, anywhere };  // without ^ and $: all of the text, or any part of it
  struct options {
    match how = match::whole;
    /// For the inside of JSON strings: control characters without a short escape are left out, and \s and . mean what
    /// they do in ECMA-262, whose expressions JSON Schema uses.
    bool is_json = false;
    bool any_case = false;    // ASCII letters match both cases
    bool dot_is_any = false;  // the dot matches a line feed too
    bool may_anchor = true;   // if false, ^ and $ are refused
    std::uint32_t states_max = regex_dfa::states_max;
  };

  /// Supports what RE2 does, except flags, word boundaries and Unicode classes: characters, ., classes, \d \w \s and
  /// their opposites, groups, |, * + ? {m,n} (lazy ones mean the same), ^ at the beginning and $ at the end of an
  /// alternative. Refuses look-around, back references, and what takes more than `states_max` states or the limit of
  /// `steps`.
  static result<regex_dfa> compile(std::string_view pattern, const options& o, step_count& steps);
  /// The same with a limit of compile_steps_max.
  static result<regex_dfa> compile(std::string_view pattern, const options& o) {
    step_count steps(compile_steps_max);
    return compile(pattern, o, steps);
  }

  /// The texts that both accept. Fails if there are none, or if it takes more than `most` states or too many steps.
  [[nodiscard]] result<regex_dfa> both(const regex_dfa& other, std::uint32_t most, step_count& steps) const {
    return combined(other, false, most, steps);
  }
  /// The texts that this accepts and the other does not, likewise.
  [[nodiscard]] result<regex_dfa> without(const regex_dfa& other, std::uint32_t most, step_count& steps) const {
    return combined(other, true, most, steps);
  }
  /// For each state the numbers of characters so far from which a text of this length can be completed: where those
  /// ranges begin and end by turns, without the last end if it has none. Beyond the least length of any number all are
  /// alike. Empty if there is no text, or if it takes more steps than allowed.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> completable(text_length length, step_count& steps) const;
  /// The digits of multiples of `of`, which is at least 1, without 0 and leading zeros.
  static regex_dfa multiples_of(std::uint32_t of);
  /// All texts of any bytes that do not contain `text`, and do not begin with one of `beginnings`. The first byte of
  /// `text` occurs only once in it and nowhere in those. Fails if it takes more than bytes_without_max states: one for
  /// each byte of `text`, and of the tree of beginnings.
  static result<regex_dfa> bytes_without(std::string_view text, const std::vector<std::string>& beginnings = {});
  [[nodiscard]] bool matches(std::string_view text) const;

  [[nodiscard]] std::uint32_t begin() const { return 0; }
  [[nodiscard]] std::uint16_t next(std::uint32_t from, std::uint8_t byte) const { return states_[from].next[byte]; }
  [[nodiscard]] bool accepts(std::uint32_t at) const { return states_[at].accepts; }
  [[nodiscard]] bool goes_on(std::uint32_t at) const { return states_[at].goes_on; }
  /// The byte that must follow; empty if there is a choice or the text may end. It lives as long as this object.
  [[nodiscard]] std::string_view only_byte(std::uint32_t at) const {
    return {&states_[at].only, states_[at].is_forced ? 1U : 0U};
  }
  [[nodiscard]] std::uint32_t states_count() const { return static_cast<std::uint32_t>(states_.size()); }

 private:
  struct state {
    std::array<std::uint16_t, 256> next;  // the next state by byte, or dead
    bool accepts = false;
    bool goes_on = false;    // some byte may follow
    bool is_forced = false;  // only the byte `only` may follow, and the text cannot end here
    char only = 0;
  };
  void drop_dead_ends(step_count& steps);
  [[nodiscard]] result<regex_dfa> combined(const regex_dfa& other, bool is_without, std::uint32_t most,
                                           step_count& steps) const;

  std::vector<state> states_;
};

}  // namespace redline::grammar
