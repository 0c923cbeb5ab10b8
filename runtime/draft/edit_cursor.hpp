#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::draft {

/// Follows an answer through a text that it mostly repeats, such as a client's prediction. The answer may begin with
/// something else (a sentence, a code fence), leave the text, change it and return to it.
///
/// The cursor advances while the answer repeats the text. When they diverge, it moves to the longest match with the
/// answer's last tokens, preferring positions ahead. If no token of the text fits, one token is assumed to be replaced
/// by another. After misses_max such guesses in a row the cursor is silent until anchor_tokens tokens of the answer
/// match the text. A copy shares the text and moves independently.
class edit_cursor {
 public:
  edit_cursor() = default;
  /// Takes constant time; `index` does the work.
  explicit edit_cursor(std::vector<token> known);
  /// Indexes up to `tokens_max` more tokens of the text. Returns true when done; only then can the cursor be used.
  [[nodiscard]] bool index(std::size_t tokens_max);

  /// Takes the answer's next token, in amortized constant time: it searches only if the answer left the text, among the
  /// occurrences_max nearest on either side.
  void emit(token t);
  /// Moves back to before the answer's first token.
  void rewind();

  /// The likely next tokens, at most `count`; none if the cursor is lost or at the end of the text.
  [[nodiscard]] std::span<const token> ahead(std::size_t count) const;
  /// How many of the last emitted tokens match the text before the cursor, at most agreed_max.
  [[nodiscard]] std::uint32_t agreed() const { return agreed_; }
  /// The evidence for the tokens ahead, as a number of matching tokens. An answer that has followed the text from its
  /// first token is expected to go on as if more had matched.
  [[nodiscard]] std::uint32_t evidence() const { return has_left_ ? agreed_ : std::max(agreed_, agreed_from_start); }
  [[nodiscard]] bool empty() const { return known_ == nullptr; }

  static constexpr std::uint32_t agreed_max = 32;
  static constexpr std::uint32_t agreed_from_start = 6;
  static constexpr std::uint32_t anchor_tokens = 2;
  static constexpr std::uint32_t misses_max = 4;
  static constexpr std::size_t occurrences_max = 64;

 private:
  struct found {
    std::uint32_t place = 0;
    std::uint32_t agreed = 0;
  };
  struct known_text {
    std::vector<token> tokens;
    std::unordered_map<token, std::vector<std::uint32_t>> places;  // positions after each occurrence, ascending
    std::size_t indexed = 0;                                       // number of leading tokens in the index
  };
  [[nodiscard]] found longest_before(token t) const;
  [[nodiscard]] std::uint32_t agreement(std::uint32_t place) const;

  std::shared_ptr<known_text> known_;  // null if empty; constant after indexing
  std::vector<token> emitted_;         // at most 2 * agreed_max, the latest last
  std::uint32_t place_ = 0;            // index in the text of the next token
  std::uint32_t agreed_ = 0;
  std::uint32_t misses_ = 0;  // consecutive guesses
  bool begun_ = false;        // a part of the text was repeated
  bool has_left_ = false;     // a token was not the next one of the text
};

}  // namespace redline::draft
