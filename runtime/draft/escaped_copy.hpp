#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/draft/text_lookup.hpp"

namespace redline::draft {

/// Follows JSON as it is written, and says how a string that copies a known text goes on: an edit tool's arguments are
/// mostly pieces of files that the conversation shows, but with line breaks and quotes escaped. The text is looked up
/// as it was before it was escaped.
///
/// A string begins as what it probably is: a new version of the last one that was a copy, else the value that was known
/// by the same name (a path), else the text that was read last. Where it leaves the known text, that place is kept
/// until enough bytes agree again, because what comes is mostly a word that replaces one, or lines put in between.
class escaped_copy {
 public:
  /// known: may be null, then nothing is ever said.
  explicit escaped_copy(std::shared_ptr<const text_lookup> known) : known_(std::move(known)) { reset(); }

  /// More of the JSON text.
  void feed(std::string_view bytes);
  /// Another document begins, by the same hand: what it puts between tokens is still known.
  void reset();

  struct guess {
    std::string bytes;          // as JSON spells them; may end inside of what a token spells
    std::uint32_t matched = 0;  // bytes before them that agree: what speaks for it
  };
  /// What probably comes next, at most some `bytes_max`. Nothing outside of a value that is a string, and where no
  /// place is known.
  [[nodiscard]] std::optional<guess> ahead(std::size_t bytes_max) const;
  /// Outside of strings: a blank comes next if one may, as it did after the last such sign; at first as templates
  /// write.
  [[nodiscard]] bool wants_blank() const {
    return !in_string_ && !blank_came_ &&
           ((before_ == ':' && blank_after_colon_) || (before_ == ',' && blank_after_comma_));
  }

 private:
  void feed(char byte);
  void feed_sign(char byte);
  void begin_string();
  void end_string();
  void take(std::string_view decoded);
  void take(char c);
  void look_again(char c);
  [[nodiscard]] std::uint32_t after_replaced() const;
  [[nodiscard]] bool in_text() const { return in_string_ && is_value_; }

  static constexpr std::size_t tail_max = 2 * text_lookup::matched_max;

  std::shared_ptr<const text_lookup> known_;
  bool blank_after_colon_ = true;
  bool blank_after_comma_ = true;
  bool in_string_ = false;
  bool is_value_ = false;    // not a member's name
  char before_ = 0;          // the last byte outside of strings but blanks
  bool blank_came_ = false;  // after it
  std::string name_;         // of the last member
  std::string escape_;       // begun, without its backslash
  bool in_escape_ = false;

  std::string tail_;           // of the string so far, not escaped
  std::uint32_t written_ = 0;  // bytes of it
  std::uint32_t place_ = 0;    // in the known texts, of what comes next; 0: unknown
  std::uint32_t matched_ = 0;  // bytes of the string before it that agree, at most matched_max
  std::uint32_t solid_ = 0;    // of them that are no blanks: indentation says nothing of where one is
  std::uint32_t trust_ = 0;    // bytes that spoke for the place where the string began, until it is left
  bool is_found_ = false;      // some place of this string was sure
  bool is_whole_ = false;      // all of the string agrees
  bool is_named_ = false;      // it began as the value of the same name, and still is that
  std::uint32_t left_ = 0;     // where the text was left, until a place is sure again; 0: it was not
  char left_with_ = 0;         // the byte that came there instead

  /// The last value that was a copied piece. Another one may be a new version of it, and then probably ends where it
  /// did.
  struct piece {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  std::optional<piece> last_piece_;
  bool is_version_ = false;  // the string began as one
};

}  // namespace redline::draft
