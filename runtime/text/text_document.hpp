#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::text {

/// The units in which a position counts along its line, named as in the Language Server Protocol.
enum class position_encoding : std::uint8_t { utf8, utf16 };

/// A position between two characters; both numbers count from 0.
struct text_position {
  std::uint32_t line = 0;
  std::uint32_t character = 0;
  bool operator==(const text_position&) const = default;
};
struct position_range {
  text_position begin;
  text_position end;
  bool operator==(const position_range&) const = default;
};
struct byte_range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const byte_range&) const = default;
};
struct whole_text {
  bool operator==(const whole_text&) const = default;
};

/// Replaces a range by `text`; an empty range inserts.
struct text_edit {
  std::variant<whole_text, position_range, byte_range> where;
  std::string text;
};

/// A UTF-8 text and the starts of its lines. A line ends with "\n", "\r\n" or "\r", as in the Language Server Protocol.
class text_document {
 public:
  /// Fails for text that is not UTF-8 or has more than `bytes_max` bytes.
  static result<text_document> make(std::string text, std::size_t bytes_max);

  /// Changes the text, or fails and leaves it unchanged: for a range that ends before it begins, lies outside the text
  /// or its line, or cuts a character (in UTF-16 also a surrogate pair), and for new text that is not UTF-8 or too
  /// long. Returns the replaced range, in bytes of the old text.
  result<byte_range> replace(const text_edit& edit, position_encoding units);

  /// A line's terminator is not part of it, so no position lies inside "\r\n". A position after the end of its line is
  /// a failure: the caller refers to another text.
  [[nodiscard]] result<std::size_t> offset_of(text_position where, position_encoding units) const;
  /// Interprets a position as the Language Server Protocol does: after the end of its line or of the text it means that
  /// end, inside a character the start of the character.
  [[nodiscard]] std::size_t offset_near(text_position where, position_encoding units) const;
  /// The position of a byte; inside a character or "\r\n" its start, after the text the text's end.
  [[nodiscard]] text_position position_of(std::size_t offset, position_encoding units) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  /// At least 1, because an empty text has one empty line.
  [[nodiscard]] std::size_t lines_count() const { return line_begins_.size(); }
  [[nodiscard]] std::size_t held_bytes() const {
    return text_.capacity() + line_begins_.capacity() * sizeof(std::uint32_t);
  }

 private:
  text_document(std::string text, std::size_t bytes_max);

  [[nodiscard]] result<byte_range> bytes_of(const text_edit& edit, position_encoding units) const;
  [[nodiscard]] std::size_t line_at(std::size_t offset) const;
  /// Where a line's terminator begins, or the text ends.
  [[nodiscard]] std::size_t line_end(std::size_t line) const;
  void splice(byte_range range, std::string_view with);

  std::string text_;
  std::size_t bytes_max_;
  std::vector<std::uint32_t> line_begins_;  // ascending, the first is 0
};

}  // namespace redline::text
