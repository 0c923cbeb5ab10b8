#include "runtime/text/text_document.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/utf8.hpp"

namespace redline::text {
namespace {

failure bad(std::string why) { return {errc::invalid_argument, std::move(why)}; }

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::string described(text_position p) {
  return "line " + std::to_string(p.line) + ", character " + std::to_string(p.character);
}

/// Appends the starts of lines whose line ends lie in [begin, end); the text may continue after `end`.
void find_line_begins(std::string_view text, std::size_t begin, std::size_t end, std::vector<std::uint32_t>& out) {
  for (std::size_t i = begin; i < end; ++i) {
    const bool ends = text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
    if (ends) out.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

result<void> check_text(std::string_view text) {
  const std::size_t valid = utf8::valid_prefix_bytes(text);
  if (valid == text.size()) return {};
  return bad("expected text in UTF-8, found an invalid byte at offset " + std::to_string(valid));
}

result<void> check_size(std::size_t bytes, std::size_t bytes_max) {
  if (bytes <= bytes_max) return {};
  return bad("expected a text of at most " + std::to_string(bytes_max) + " bytes, found " + std::to_string(bytes));
}

/// A character's width; UTF-16 encodes the four-byte characters as a pair.
std::size_t units_of(std::size_t bytes, position_encoding units) {
  return units == position_encoding::utf8 ? bytes : bytes == 4 ? 2 : 1;
}

struct step {
  std::size_t at = 0;           // byte offset
  std::size_t units_count = 0;  // units from the beginning to `at`
};
/// Walks from `begin` over whole characters until `wanted` units have been passed or `end` is reached.
step walk(std::string_view text, std::size_t begin, std::size_t end, std::size_t wanted, position_encoding units) {
  step s{begin, 0};
  while (s.at < end && s.units_count < wanted) {
    const std::size_t bytes = utf8::first_unit(text.substr(s.at)).size_bytes;
    s.units_count += units_of(bytes, units);
    s.at += bytes;
  }
  return s;
}

}  // namespace

text_document::text_document(std::string text, std::size_t bytes_max)
    : text_(std::move(text)), bytes_max_(bytes_max), line_begins_{0} {
  find_line_begins(text_, 0, text_.size(), line_begins_);
}

result<text_document> text_document::make(std::string text, std::size_t bytes_max) {
  REDLINE_ASSERT(bytes_max < (std::size_t{1} << 32), "offsets are 32 bits wide");
  REDLINE_TRY(check_size(text.size(), bytes_max));
  REDLINE_TRY(check_text(text));
  return text_document(std::move(text), bytes_max);
}

result<std::size_t> text_document::offset_of(text_position where, position_encoding units) const {
  if (where.line >= line_begins_.size()) {
    return bad("expected a line below " + std::to_string(line_begins_.size()) + ", found " +
               std::to_string(where.line));
  }
  const auto [at, units_count] = walk(text_, line_begins_[where.line], line_end(where.line), where.character, units);
  if (units_count < where.character) {
    return bad(described(where) + ": expected a character up to " + std::to_string(units_count) +
               ", the line's length");
  }
  if (units_count > where.character) {
    return bad(described(where) + " lies inside " +
               (units == position_encoding::utf8 ? "a character's bytes" : "a surrogate pair"));
  }
  return at;
}

std::size_t text_document::line_end(std::size_t line) const {
  if (line + 1 >= line_begins_.size()) return text_.size();
  std::size_t end = line_begins_[line + 1] - 1;
  if (end > line_begins_[line] && text_[end] == '\n' && text_[end - 1] == '\r') --end;
  return end;
}

std::size_t text_document::offset_near(text_position where, position_encoding units) const {
  if (where.line >= line_begins_.size()) return text_.size();
  auto [at, units_count] = walk(text_, line_begins_[where.line], line_end(where.line), where.character, units);
  if (units_count > where.character) {
    do --at;
    while (!starts_character(text_[at]));
  }
  return at;
}

text_position text_document::position_of(std::size_t offset, position_encoding units) const {
  offset = std::min(offset, text_.size());
  const std::size_t line = line_at(offset);
  const std::size_t end = std::min(offset, line_end(line));
  std::size_t character = 0;
  for (std::size_t at = line_begins_[line]; at < end;) {
    const std::size_t bytes = utf8::first_unit(std::string_view(text_).substr(at)).size_bytes;
    if (at + bytes > end) break;
    character += units_of(bytes, units);
    at += bytes;
  }
  return {static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(character)};
}

result<byte_range> text_document::bytes_of(const text_edit& edit, position_encoding units) const {
  byte_range range{0, text_.size()};
  if (const auto* positions = std::get_if<position_range>(&edit.where)) {
    REDLINE_TRY_ASSIGN(range.begin, offset_of(positions->begin, units));
    REDLINE_TRY_ASSIGN(range.end, offset_of(positions->end, units));
  } else if (const auto* bytes = std::get_if<byte_range>(&edit.where)) {
    range = *bytes;
    for (const std::size_t offset : {range.begin, range.end}) {
      if (offset > text_.size()) {
        return bad("expected a byte offset up to " + std::to_string(text_.size()) + ", the text's length, found " +
                   std::to_string(offset));
      }
      if (offset < text_.size() && !starts_character(text_[offset])) {
        return bad("byte offset " + std::to_string(offset) + " lies inside a character");
      }
    }
  }
  if (range.begin > range.end) {
    return bad("expected a range that begins before it ends, found bytes " + std::to_string(range.begin) + " to " +
               std::to_string(range.end));
  }
  return range;
}

result<byte_range> text_document::replace(const text_edit& edit, position_encoding units) {
  REDLINE_TRY_ASSIGN(const byte_range range, bytes_of(edit, units));
  REDLINE_TRY(check_text(edit.text));
  REDLINE_TRY(check_size(text_.size() - (range.end - range.begin) + edit.text.size(), bytes_max_));
  splice(range, edit.text);
  return range;
}

std::size_t text_document::line_at(std::size_t offset) const {
  const auto behind = std::upper_bound(line_begins_.begin(), line_begins_.end(), offset);
  return static_cast<std::size_t>(behind - line_begins_.begin()) - 1;
}

/// Finds lines again from the one before the range, whose "\r" may meet or lose a "\n", to the last line of the range,
/// whose end stays an end.
void text_document::splice(byte_range range, std::string_view with) {
  const std::size_t first = line_at(range.begin == 0 ? 0 : range.begin - 1);
  const std::size_t behind = line_at(range.end) + 1;
  const bool to_end = behind >= line_begins_.size();
  const std::size_t old_end = to_end ? text_.size() : line_begins_[behind];
  const auto grown = static_cast<std::ptrdiff_t>(with.size()) - static_cast<std::ptrdiff_t>(range.end - range.begin);
  text_.replace(range.begin, range.end - range.begin, with);

  const std::size_t begin = line_begins_[first];
  const std::size_t end = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(old_end) + grown);
  std::vector<std::uint32_t> begins;
  find_line_begins(text_, begin, end, begins);
  for (std::size_t i = behind + 1; i < line_begins_.size(); ++i) {
    begins.push_back(static_cast<std::uint32_t>(static_cast<std::ptrdiff_t>(line_begins_[i]) + grown));
  }
  line_begins_.resize(first + 1);
  line_begins_.insert(line_begins_.end(), begins.begin(), begins.end());
}

}  // namespace redline::text
