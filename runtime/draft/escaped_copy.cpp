#include "runtime/draft/escaped_copy.hpp"

#include <algorithm>
#include <utility>

namespace redline::text {
namespace {

/// A copy shorter than this is a name or a path, of which there is no new version.
constexpr std::size_t version_bytes_min = 16;

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

/// The character that "\uXXXX" spells, as UTF-8; of half a pair a mark that no text holds.
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
  in_string_ = is_value_ = in_escape_ = false;
  before_ = 0;
  escape_.clear();
  tail_.clear();
  place_ = matched_ = 0;
  begin_ = known_ ? known_->last_begin() : 0;
}

void escaped_copy::feed(std::string_view bytes) {
  if (!known_) return;
  for (const char c : bytes) feed(c);
}

void escaped_copy::feed(char byte) {
  if (!in_string_) {
    if (byte == '"') {
      in_string_ = true;
      is_value_ = before_ == ':' || before_ == '[';
      tail_.clear();
      written_ = 0;
      place_ = begin_;
      matched_ = 0;
    } else if (byte != ' ' && byte != '\n' && byte != '\t' && byte != '\r') {
      before_ = byte;
    }
    return;
  }
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
    in_string_ = false;
    before_ = byte;
  } else {
    take({&byte, 1});
  }
}

/// The place moves along while the string repeats the text, and else to where its last bytes stand.
void escaped_copy::take(std::string_view decoded) {
  if (!in_text()) return;
  for (const char c : decoded) {
    if (tail_.size() == tail_max) tail_.erase(0, tail_max / 2);
    tail_ += c;
    ++written_;
    const auto next = known_->from(place_, 1);
    if (place_ > 0 && !next.empty() && next.front() == c) {
      ++place_;
      matched_ = std::min<std::uint32_t>(matched_ + 1, text_lookup::matched_max);
    } else {
      auto found = known_->find(tail_, place_);
      if (!found && place_ > 0) found = known_->find_after(tail_, place_);
      matched_ = found ? found->matched : 0;
      if (found) place_ = found->place;
    }
    if (matched_ == written_ && written_ >= version_bytes_min) begin_ = place_ - static_cast<std::uint32_t>(written_);
  }
}

std::optional<escaped_copy::guess> escaped_copy::ahead(std::size_t bytes_max) const {
  if (!known_ || !in_text() || in_escape_ || place_ == 0) return std::nullopt;
  // At its beginning a string is perhaps a new version of the last one; later some bytes have to agree.
  if (matched_ == 0 && written_ > 0) return std::nullopt;
  guess out{.bytes = {}, .matched = matched_};
  const auto next = known_->from(place_, bytes_max);
  for (const char c : next) append_escaped(out.bytes, c);
  // A whole text was copied: the string ends with it.
  if (next.size() < bytes_max) out.bytes += '"';
  if (out.bytes.empty()) return std::nullopt;
  return out;
}

}  // namespace redline::text
