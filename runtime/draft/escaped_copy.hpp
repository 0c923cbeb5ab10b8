#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/draft/text_lookup.hpp"

namespace redline::draft {

/// Follows JSON as it is written, and predicts how a string that copies a known text continues: an edit tool's
/// arguments are mostly pieces of files shown in the conversation, but with line breaks and quotes escaped. The lookup
/// uses the unescaped text.
///
/// A string begins as what it probably is: a new version of the last copied string, else the value last seen under the
/// same name (a path), else the text that was read last. When it leaves the known text, that position is remembered
/// until enough bytes match again, because usually a word is replaced or lines are inserted.
class escaped_copy {
 public:
  /// known: may be null; then nothing is predicted.
  explicit escaped_copy(std::shared_ptr<const text_lookup> known) : known_(std::move(known)) { reset(); }

  /// Takes more of the JSON text.
  void feed(std::string_view bytes);
  /// Begins another document by the same writer: its whitespace habits are still known.
  void reset();

  struct guess {
    std::string bytes;          // in JSON's escapes; may end inside a token's text
    std::uint32_t matched = 0;  // matching bytes before them: the evidence for the guess
  };
  /// The likely continuation, at most about `bytes_max`. nullopt outside of a string value or without a position.
  [[nodiscard]] std::optional<guess> ahead(std::size_t bytes_max) const;
  /// Whether a space comes next outside of strings: if one may, and one came after the last such character. At first it
  /// follows the usage of templates.
  [[nodiscard]] bool wants_whitespace() const {
    return !in_string_ && !whitespace_came_ &&
           ((before_ == ':' && space_after_colon_) || (before_ == ',' && space_after_comma_));
  }

 private:
  void feed(char byte);
  void feed_sign(char byte);
  void begin_string();
  void end_string();
  void take(std::string_view decoded);
  void take(char c);
  void find_continuation_again(char c);
  [[nodiscard]] std::uint32_t after_replaced() const;
  [[nodiscard]] bool in_text() const { return in_string_ && is_value_; }

  static constexpr std::size_t tail_max = 2 * text_lookup::matched_max;

  std::shared_ptr<const text_lookup> known_;
  bool space_after_colon_ = true;
  bool space_after_comma_ = true;
  bool in_string_ = false;
  bool is_value_ = false;         // not a member's name
  char before_ = 0;               // the last byte outside of strings that is not whitespace
  bool whitespace_came_ = false;  // whitespace came after before_
  std::string name_;              // name of the last member
  std::string escape_;            // begun escape, without its backslash
  bool in_escape_ = false;

  std::string tail_;           // the string so far, unescaped
  std::uint32_t written_ = 0;  // bytes of the string
  std::uint32_t place_ = 0;    // cursor in the known texts; 0 means unknown
  std::uint32_t matched_ = 0;  // matching bytes of the string before the cursor, at most matched_max
  std::uint32_t solid_ = 0;    // those that are not whitespace: indentation does not identify a position
  std::uint32_t trust_ = 0;    // matching bytes at the start of the string, until the text is left
  bool is_found_ = false;      // some position of this string was certain
  bool is_whole_ = false;      // the whole string matches
  bool is_named_ = false;      // it began as the value of the same name, and still matches
  std::uint32_t left_ = 0;     // where the text was left, until a position is certain again; 0 if it was not
  char left_with_ = 0;         // the byte that came there instead

  /// The last value that was a copied piece. Another value may be a new version of it, and then probably ends where it
  /// did.
  struct piece {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  std::optional<piece> last_piece_;
  bool is_version_ = false;  // the string began as a new version
};

}  // namespace redline::draft
