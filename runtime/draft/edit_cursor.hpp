#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"

namespace redline::draft {

/// Where an answer stands in a known text that it mostly repeats: a client's prediction, which the answer may begin
/// before (a sentence, a code fence), leave, change and come back to.
///
/// The place moves along while the answer repeats the text. Where they part, it goes to the longest run of tokens that
/// ends as the answer does, ahead of the place first; where no token of the text fits, one token is taken to be
/// replaced by another. After misses_max such guesses in a row the cursor has nothing to say until anchor_tokens tokens
/// of the answer stand in the text. A copy shares the text and goes its own way.
class edit_cursor {
 public:
  edit_cursor() = default;
  /// Constant time; `index` does the work.
  explicit edit_cursor(std::vector<token> known);
  /// Indexes up to `tokens_max` more tokens of the text. True: it is done, and the cursor may be used.
  [[nodiscard]] bool index(std::size_t tokens_max);

  /// The answer's next token. Constant time, amortised: a place is looked for only where the answer left the text,
  /// among the occurrences_max nearest on either side.
  void emit(token t);
  /// Back to before the answer's first token.
  void rewind();

  /// What probably comes next, at most `count` tokens; none when the place is lost or the end of the text.
  [[nodiscard]] std::span<const token> ahead(std::size_t count) const;
  /// How many of the last emitted tokens stand in the text before the place, at most agreed_max: what speaks for it.
  [[nodiscard]] std::uint32_t agreed() const { return agreed_; }
  [[nodiscard]] bool empty() const { return known_ == nullptr; }

  static constexpr std::uint32_t agreed_max = 32;
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
    std::unordered_map<token, std::vector<std::uint32_t>> places;  // after each occurrence, ascending
    std::size_t indexed = 0;                                       // leading tokens that are among the places
  };
  [[nodiscard]] found longest_before(token t) const;
  [[nodiscard]] std::uint32_t agreement(std::uint32_t place) const;

  std::shared_ptr<known_text> known_;  // null: empty; constant once it is indexed
  std::vector<token> emitted_;         // at most 2 * agreed_max, the last at the end
  std::uint32_t place_ = 0;            // index in the text of what comes next
  std::uint32_t agreed_ = 0;
  std::uint32_t misses_ = 0;  // guesses in a row
  bool begun_ = false;        // something of the text was repeated
};

}  // namespace redline::draft
