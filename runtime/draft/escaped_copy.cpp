#include "runtime/draft/escaped_copy.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace redline::draft {
namespace {

/// A copy shorter than this is a name or a path, which has no new version.
constexpr std::size_t version_bytes_min = 16;
/// A position is certain after as many matching bytes as `text_lookup` looks up at once.
constexpr std::size_t sure_bytes = text_lookup::gram_bytes;
/// Bytes around a member's name: two quotes, a colon, a space and a quote.
constexpr std::size_t name_signs = 5;
constexpr std::size_t name_bytes_max = 64;

bool is_whitespace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool is_word(char c) {
  const char lower = static_cast<char>(c | 0x20);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

void append_escaped(std::string& out, char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (byte) {
    case '"':
    case '\\':
      out += '\\';
      out += byte;
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  const auto code = static_cast<unsigned char>(byte);
  if (code >= 0x20) {
    out += byte;
    return;
  }
  out += "\\u00";
  out += digits[code >> 4];
  out += digits[code & 15];
}

/// The character that "\uXXXX" encodes, as UTF-8; for half a surrogate pair, a mark that no text contains.
std::string from_hex(std::string_view four) {
  unsigned code = 0;
  for (const char c : four) code = code * 16 + static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  std::string out;
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
  return out;
}

}  // namespace

void escaped_copy::reset() {
  in_string_ = is_value_ = in_escape_ = whitespace_came_ = is_version_ = false;
  before_ = 0;
  escape_.clear();
  name_.clear();
  tail_.clear();
  place_ = 0;
  last_piece_.reset();
}

void escaped_copy::feed(std::string_view bytes) {
  if (!known_) return;
  for (const char c : bytes) feed(c);
}

void escaped_copy::feed_sign(char byte) {
  bool* const style = before_ == ':' ? &space_after_colon_ : before_ == ',' ? &space_after_comma_ : nullptr;
  if (is_whitespace(byte)) {
    if (style != nullptr) *style = true;
    whitespace_came_ = true;
    return;
  }
  if (style != nullptr && !whitespace_came_) *style = false;
  if (byte == '"') {
    begin_string();
  } else {
    before_ = byte;
    whitespace_came_ = false;
  }
}

void escaped_copy::begin_string() {
  in_string_ = true;
  is_value_ = before_ == ':' || before_ == '[';
  is_version_ = is_named_ = is_found_ = false;
  is_whole_ = true;
  written_ = matched_ = solid_ = trust_ = left_ = 0;
  tail_.clear();
  if (!is_value_) {
    name_.clear();
    return;
  }
  if (last_piece_) {
    is_version_ = is_found_ = true;
    place_ = last_piece_->begin;
    trust_ = std::min<std::uint32_t>(last_piece_->end - last_piece_->begin, text_lookup::matched_max);
  } else if (const auto known = known_->begin_of(name_)) {
    is_named_ = true;
    place_ = *known;
    trust_ = static_cast<std::uint32_t>(std::min(name_.size() + name_signs, text_lookup::matched_max));
  } else {
    place_ = known_->last_begin();
  }
}

void escaped_copy::end_string() {
  in_string_ = false;
  before_ = '"';
  whitespace_came_ = false;
  // A string that repeats a value by its name is not a piece of a text that is being changed.
  if (is_value_ && is_whole_ && !is_named_ && is_found_ && written_ >= version_bytes_min)
    last_piece_ = {.begin = place_ - written_, .end = place_};
}

void escaped_copy::feed(char byte) {
  if (!in_string_) return feed_sign(byte);
  if (in_escape_) {
    if (escape_.empty() && byte != 'u') {
      constexpr std::pair<char, char> spelled[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'}, {'f', '\f'}};
      for (const auto& [letter, meaning] : spelled) {
        if (byte == letter) byte = meaning;
      }
      in_escape_ = false;
      return take({&byte, 1});
    }
    escape_ += byte;
    if (escape_.size() < 5) return;
    in_escape_ = false;
    const auto decoded = from_hex(std::string_view(escape_).substr(1));
    escape_.clear();
    return take(decoded);
  }
  if (byte == '\\') {
    in_escape_ = true;
  } else if (byte == '"') {
    end_string();
  } else {
    take({&byte, 1});
  }
}

void escaped_copy::take(std::string_view decoded) {
  if (is_value_) {
    for (const char c : decoded) take(c);
  } else if (name_.size() < name_bytes_max) {
    name_ += decoded;
  }
}

/// Advances the cursor while the string repeats the text.
void escaped_copy::take(char c) {
  if (tail_.size() == tail_max) tail_.erase(0, tail_max / 2);
  tail_ += c;
  ++written_;
  const auto next = known_->from(place_, 1);
  if (place_ > 0 && !next.empty() && next.front() == c) {
    ++place_;
    matched_ = std::min<std::uint32_t>(matched_ + 1, text_lookup::matched_max);
    solid_ += is_whitespace(c) ? 0 : 1;
  } else {
    find_continuation_again(c);
  }
  if (matched_ == written_) is_whole_ = true;
  if (solid_ < sure_bytes) return;
  is_found_ = true;
  left_ = 0;
}

/// Finds where the string may continue after a byte that differs from the text.
void escaped_copy::find_continuation_again(char c) {
  if (left_ == 0) {
    left_ = place_;
    left_with_ = c;
  }
  is_whole_ = is_named_ = false;
  trust_ = 0;
  // Inserted lines usually begin in the middle of a line, after its indentation.
  const std::uint32_t near = left_ == 0 ? 0 : known_->line_before(left_);
  auto found = known_->find(tail_, near);
  if (!found && left_ > 0) found = known_->find_after(tail_, near);
  matched_ = found ? found->matched : 0;
  place_ = found ? found->place : is_found_ ? after_replaced() : 0;
  solid_ = static_cast<std::uint32_t>(std::count_if(tail_.end() - matched_, tail_.end(), std::not_fn(is_whitespace)));
}

/// The position after a replaced word or character; if something was inserted, the position itself.
std::uint32_t escaped_copy::after_replaced() const {
  const auto rest = known_->from(left_, text_lookup::resync_reach);
  if (rest.empty() || is_whitespace(rest.front()) || is_whitespace(left_with_)) return left_;
  if (is_word(rest.front()) != is_word(left_with_)) return left_;
  const auto end = is_word(rest.front()) ? std::find_if_not(rest.begin(), rest.end(), is_word) : rest.begin() + 1;
  return left_ + static_cast<std::uint32_t>(end - rest.begin());
}

std::optional<escaped_copy::guess> escaped_copy::ahead(std::size_t bytes_max) const {
  if (!known_ || !in_text() || place_ == 0 || !escape_.empty()) return std::nullopt;
  std::size_t most = bytes_max;
  if (is_version_ && place_ >= last_piece_->begin && place_ <= last_piece_->end)
    most = std::min<std::size_t>(most, last_piece_->end - place_);
  guess out{.bytes = {}, .matched = std::min<std::uint32_t>(trust_ + matched_, text_lookup::matched_max)};
  const auto next = known_->from(place_, most);
  for (const char c : next) append_escaped(out.bytes, c);
  // A whole text was copied, or as much as the last time: the string probably ends here.
  if (next.size() < bytes_max) out.bytes += '"';
  if (in_escape_) {
    if (!out.bytes.starts_with('\\')) return std::nullopt;
    out.bytes.erase(0, 1);
  }
  if (out.bytes.empty()) return std::nullopt;
  return out;
}

}  // namespace redline::draft
