#include "runtime/base/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/assert.hpp"

namespace redline::utf8 {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// What the lead byte allows: the length, and the range of the second byte, which excludes overlong forms, surrogates
/// and numbers above U+10FFFF.
struct lead {
  std::size_t size_bytes;
  unsigned char second_low = 0x80;
  unsigned char second_high = 0xBF;
};

lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

std::size_t ascii_prefix_bytes(std::string_view bytes) {
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & 0x8080808080808080ULL) != 0) break;
  }
  while (at < bytes.size() && static_cast<unsigned char>(bytes[at]) < 0x80) ++at;
  return at;
}

}  // namespace

unit first_unit(std::string_view bytes) {
  REDLINE_ASSERT(!bytes.empty(), "a unit of no bytes");
  using kind = unit::kind;
  const lead first = lead_of(static_cast<unsigned char>(bytes[0]));
  if (first.size_bytes == 0) return {kind::invalid, 1};
  for (std::size_t i = 1; i < first.size_bytes; ++i) {
    if (i == bytes.size()) return {kind::incomplete, i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? first.second_low : 0x80;
    const unsigned char high = i == 1 ? first.second_high : 0xBF;
    if (byte < low || byte > high) return {kind::invalid, i};
  }
  return {kind::character, first.size_bytes};
}

std::size_t valid_prefix_bytes(std::string_view bytes) {
  std::size_t at = 0;
  for (;;) {
    at += ascii_prefix_bytes(bytes.substr(at));
    if (at == bytes.size()) return at;
    const unit next = first_unit(bytes.substr(at));
    if (next.what != unit::kind::character) return at;
    at += next.size_bytes;
  }
}

code_point decode(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const unit first = first_unit(text.substr(at));
  if (first.what != unit::kind::character) return {stray_byte + byte(0), 1};
  char32_t value = byte(0) & (0x7FU >> first.size_bytes);
  for (std::size_t i = 1; i < first.size_bytes; ++i) value = (value << 6) | (byte(i) & 0x3F);
  return {value, first.size_bytes};
}

void append(std::string& out, char32_t code) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6)), put(0x80 | (code & 0x3F));
  } else if (code >= stray_byte + 0x80 && code <= stray_byte + 0xFF) {
    put(code - stray_byte);
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12)), put(0x80 | ((code >> 6) & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18)), put(0x80 | ((code >> 12) & 0x3F)), put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) at += decode(text, at).size_bytes;
  return count;
}

std::vector<std::size_t> code_point_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size(); at += decode(text, at).size_bytes) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

std::string sanitize(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t good = valid_prefix_bytes(bytes);
    out.append(bytes.substr(0, good));
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    out.append(replacement);
    bytes.remove_prefix(first_unit(bytes).size_bytes);
  }
  return out;
}

std::string stream::feed(std::string_view bytes) {
  std::string all = std::exchange(held_, {});
  all.append(bytes);
  // A character is at most four bytes, so only the last three can begin an incomplete one.
  for (std::size_t back = std::min<std::size_t>(3, all.size()); back > 0; --back) {
    const std::string_view tail = std::string_view(all).substr(all.size() - back);
    const unit next = first_unit(tail);
    if (next.what != unit::kind::incomplete || next.size_bytes != back) continue;
    held_ = tail;
    all.resize(all.size() - back);
    break;
  }
  return policy_ == invalid_bytes::replace ? sanitize(all) : all;
}

std::string stream::flush() {
  const std::string rest = std::exchange(held_, {});
  return policy_ == invalid_bytes::replace ? sanitize(rest) : rest;
}

}  // namespace redline::utf8
