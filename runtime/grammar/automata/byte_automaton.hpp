#pragma once

#include <array>
#include <bit>
#include <bitset>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

using byte_set = std::bitset<256>;

/// The bytes from first to last, both included.
inline byte_set bytes_between(std::size_t first, std::size_t last) {
  byte_set out;
  for (std::size_t byte = first; byte <= last; ++byte) out.set(byte);
  return out;
}

/// Calls `see` with each byte of a set, in order.
template<class See>
void each_byte(const byte_set& set, See see) {
  static const byte_set low_word(~std::uint64_t{0});
  for (std::size_t first = 0; first < 256; first += 64) {
    for (auto word = ((set >> first) & low_word).to_ullong(); word != 0; word &= word - 1)
      see(first + static_cast<std::size_t>(std::countr_zero(word)));
  }
}

/// The state of a byte automaton: numbers (cells) that only the automaton interprets. States are sent in messages and
/// copied at every byte, so they are small values, and their size is bounded.
class automaton_state {
 public:
  static constexpr std::size_t cells_max = 4096;

  automaton_state() = default;
  /// There are at most cells_max cells.
  explicit automaton_state(std::span<const std::uint32_t> cells) : cells_(cells.begin(), cells.end()) {}

  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  std::uint32_t& operator[](std::size_t i) { return cells_[i]; }
  std::uint32_t operator[](std::size_t i) const { return cells_[i]; }
  void push(std::uint32_t cell) { cells_.push_back(cell); }
  void drop(std::size_t count) { cells_.resize(cells_.size() - count); }
  [[nodiscard]] std::span<const std::uint32_t> cells() const { return {cells_.data(), cells_.size()}; }
  bool operator==(const automaton_state&) const = default;

 private:
  boost::container::small_vector<std::uint32_t, 32> cells_;
};

/// Nearly unrestricted text, such as the characters of a string, as a small automaton in a table. The tokens that fit
/// are found once per table instead of once per mask.
struct free_text {
  static constexpr std::size_t states_max = 8;
  static constexpr std::uint8_t outside = 0xff;
  /// The next state, or `outside`, by state and byte. Each character begins in state 0.
  std::array<std::array<std::uint8_t, 256>, states_max> next;
  /// The bytes with which a character may begin.
  byte_set begins;

  free_text() {
    for (auto& row : next) row.fill(outside);
  }
  /// The characters of UTF-8, of which the ASCII ones are limited to `ascii`. Overlong encodings, surrogates and code
  /// points beyond U+10FFFF are left out.
  static free_text characters(const byte_set& ascii) {
    enum : std::uint8_t { begin, one_more, two_more, three_more, after_e0, after_ed, after_f0, after_f4 };
    free_text t;
    const auto take = [&t](std::size_t from, unsigned first, unsigned last, std::uint8_t to) {
      for (unsigned byte = first; byte <= last; ++byte) t.next[from][byte] = to;
    };
    for (unsigned byte = 0; byte < 0x80; ++byte) {
      if (ascii[byte]) take(begin, byte, byte, begin);
    }
    take(begin, 0xc2, 0xdf, one_more);
    take(begin, 0xe0, 0xef, two_more);
    take(begin, 0xe0, 0xe0, after_e0);
    take(begin, 0xed, 0xed, after_ed);
    take(begin, 0xf0, 0xf0, after_f0);
    take(begin, 0xf1, 0xf3, three_more);
    take(begin, 0xf4, 0xf4, after_f4);
    take(one_more, 0x80, 0xbf, begin);
    take(two_more, 0x80, 0xbf, one_more);
    take(three_more, 0x80, 0xbf, two_more);
    t.begins = (ascii & bytes_between(0, 0x7f)) | bytes_between(0xc2, 0xf4);
    take(after_e0, 0xa0, 0xbf, one_more);
    take(after_ed, 0x80, 0x9f, one_more);
    take(after_f0, 0x90, 0xbf, two_more);
    take(after_f4, 0x80, 0x8f, two_more);
    return t;
  }
  /// Any sequence of these bytes, each of which counts as a character.
  explicit free_text(const byte_set& bytes) : free_text() {
    begins = bytes;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      if (bytes[byte]) next[0][byte] = 0;
    }
  }
};

/// Characters that nearly every grammar accepts in text: no control characters, quotes or backslashes.
inline const free_text& plain_text() {
  static const free_text table = free_text::characters(bytes_between(0x20, 0x7e).reset('"').reset('\\'));
  return table;
}

/// All bytes but one, for those with which markup begins: '<', '[' or a line feed. Null for others.
inline const free_text* bytes_but(std::uint8_t byte) {
  static const free_text less_than(~byte_set().set('<')), bracket(~byte_set().set('[')),
      line_feed(~byte_set().set('\n'));
  return byte == '<' ? &less_than : byte == '[' ? &bracket : byte == '\n' ? &line_feed : nullptr;
}

/// A grammar as a deterministic automaton over bytes. It is immutable, so it can be used from any thread.
class byte_automaton {
 public:
  virtual ~byte_automaton() = default;

  [[nodiscard]] virtual automaton_state begin() const = 0;
  /// Consumes a byte and adds its work to `steps`. Returns false, with `s` undefined, if the grammar does not allow it.
  [[nodiscard]] virtual bool advance(automaton_state& s, std::uint8_t byte, step_count& steps) const = 0;
  /// The same, for callers that do not limit the work.
  [[nodiscard]] bool advance(automaton_state& s, std::uint8_t byte) const {
    step_count uncounted;
    return advance(s, byte, uncounted);
  }
  /// The bytes that `advance` may take; it takes no others. By default all, for automata that do not know.
  [[nodiscard]] virtual byte_set possible_bytes(const automaton_state&) const { return byte_set().set(); }
  /// A number for each byte, of which there are `count`: those with the same number lead to the same state, or are both
  /// forbidden. By default each byte has its own.
  struct byte_kinds {
    std::array<std::uint8_t, 256> of{};
    std::size_t count = 1;
  };
  [[nodiscard]] virtual byte_kinds kinds_of_bytes(const automaton_state&) const {
    byte_kinds kinds{.count = 256};
    std::iota(kinds.of.begin(), kinds.of.end(), std::uint8_t{0});
    return kinds;
  }
  /// Whether the text so far is complete. It may be possible to continue it.
  [[nodiscard]] virtual bool is_accepting(const automaton_state& s) const = 0;
  /// Whether the text so far is complete and nothing can follow.
  [[nodiscard]] virtual bool is_terminated(const automaton_state& s) const = 0;
  /// The bytes that must come next, as far as the automaton knows them without trying all 256. They may be incomplete;
  /// if there are none, there may be a choice. They live as long as the automaton.
  [[nodiscard]] virtual std::string_view known_run(const automaton_state&, step_count&) const { return {}; }
  [[nodiscard]] std::string_view known_run(const automaton_state& s) const {
    step_count uncounted;
    return known_run(s, uncounted);
  }

  /// The free text that may begin at a state. Within a character nothing but its rest may follow.
  struct free_text_rule {
    const free_text* table = nullptr;  // null if there is none; static, as masks made from it outlive the automaton
    std::uint32_t characters_min = 0;  // how many must follow before other bytes than text may
    std::uint32_t characters_max = UINT32_MAX;  // the most characters that may follow
    /// `advance` agrees with the table except for text that begins with this byte. Such text may also be allowed, or
    /// may lead to a state other than the free text's.
    std::optional<std::uint8_t> exit_byte{};
  };
  [[nodiscard]] virtual free_text_rule free_text_at(const automaton_state&) const { return {}; }

  /// Number of unconstrained tokens (a copied span) before the grammar resumes; 0 if none.
  [[nodiscard]] virtual std::uint32_t unconstrained_tokens(const automaton_state&) const { return 0; }
  virtual void skip_unconstrained_token(automaton_state&) const {}
  /// Whether a copied span belongs here and the caller has not yet said how it continues (copy_grammar::resume).
  [[nodiscard]] virtual bool awaits_span(const automaton_state&) const { return false; }

  /// Consumes a control token, which has no bytes of its own, by its name in the model file. False if it is not
  /// allowed.
  [[nodiscard]] virtual bool advance_control(automaton_state&, std::string_view) const { return false; }
  /// Whether the bytes of `known_run` are markup. If they begin with a control token's name, that token must follow.
  [[nodiscard]] virtual bool is_markup(const automaton_state&) const { return false; }
  /// Whether nearly every token may follow, and usually all: here it pays to check whether a mask forbids anything.
  [[nodiscard]] virtual bool is_free(const automaton_state&) const { return false; }

  /// Whether the text so far can be read in more ways, or is nested deeper, than the automaton follows, so that it does
  /// not know what may follow. It then accepts every byte rather than forbid correct text, but the answer has failed.
  [[nodiscard]] virtual bool is_lost(const automaton_state&) const { return false; }

  /// About the memory that it takes.
  [[nodiscard]] virtual std::size_t size_bytes() const { return 64 << 10; }
  /// Whether `s`, which may come from a peer, keeps every table index of `advance` in range.
  [[nodiscard]] virtual bool is_valid(const automaton_state& s) const = 0;
};

}  // namespace redline::grammar
