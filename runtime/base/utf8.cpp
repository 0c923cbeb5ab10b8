#include "runtime/base/utf8.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/assert.hpp"

namespace redline::text {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

/// What the lead byte allows: the length, and the range of the second byte, where overlong forms, surrogates and
/// numbers above U+10FFFF show.
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

utf8_unit first_unit(std::string_view bytes) {
  REDLINE_ASSERT(!bytes.empty(), "a unit of no bytes");
  using kind = utf8_unit::kind;
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
    const utf8_unit unit = first_unit(bytes.substr(at));
    if (unit.what != utf8_unit::kind::character) return at;
    at += unit.size_bytes;
  }
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

std::string utf8_stream::feed(std::string_view bytes) {
  std::string all = std::exchange(held_, {});
  all.append(bytes);
  // A character is at most four bytes, so only the last three can begin an incomplete one.
  for (std::size_t back = std::min<std::size_t>(3, all.size()); back > 0; --back) {
    const std::string_view tail = std::string_view(all).substr(all.size() - back);
    const utf8_unit unit = first_unit(tail);
    if (unit.what != utf8_unit::kind::incomplete || unit.size_bytes != back) continue;
    held_ = tail;
    all.resize(all.size() - back);
    break;
  }
  return policy_ == invalid_bytes::replace ? sanitize(all) : all;
}

std::string utf8_stream::flush() {
  const std::string rest = std::exchange(held_, {});
  return policy_ == invalid_bytes::replace ? sanitize(rest) : rest;
}

}  // namespace redline::text
