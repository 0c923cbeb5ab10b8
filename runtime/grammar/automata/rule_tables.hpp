#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/grammar/automata/byte_automaton.hpp"

namespace redline::grammar {

/// The tables of a rules_automaton.
///
/// A *place* is a point in a rule after a byte or a call: what may follow there up to the next byte is in tables.
/// Repetitions of simple parts, and texts of which each may be chosen once, have a number beside their places.
struct rule_tables {
  static constexpr std::uint32_t no_loop = UINT32_MAX, no_guard = UINT32_MAX;
  /// A way to take a byte of a set.
  struct head {
    std::uint32_t set = 0;
    std::uint32_t next = 0;  // the place after it
    std::uint32_t run = 0;   // a byte of a literal: where the rest of it begins in `literals`
    std::uint32_t run_count = 0;
    std::uint32_t guard = no_guard;  // in `guards`: when it may be taken
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

  std::vector<place> places;
  std::vector<ways> beginnings;  // by rule: the ways of the rule and of all that it calls before its first byte
  std::vector<head> heads;
  std::vector<call> calls;
  std::vector<byte_set> sets;
  std::vector<loop> loops;
  std::vector<guard> guards;
  std::vector<bool> is_markup;  // by rule
  std::string literals;
  std::uint32_t root = 0;          // the rule of a whole text
  std::uint32_t accept = 0;        // the place after it
  bool root_may_be_empty = false;  // the empty text is a whole text

  [[nodiscard]] std::span<const head> heads_of(const ways& w) const { return {heads.data() + w.first_head, w.heads}; }
  [[nodiscard]] std::span<const call> calls_of(const ways& w) const { return {calls.data() + w.first_call, w.calls}; }
  /// Whether ways with this guard may be taken at this number.
  [[nodiscard]] bool may_take(std::uint32_t guard, std::uint32_t number) const;
  /// Whether a place of a measured text leads on with this number of characters.
  [[nodiscard]] bool leads_on(const place& p, std::uint32_t number) const;
  [[nodiscard]] std::size_t size_bytes() const;
};

}  // namespace redline::grammar
