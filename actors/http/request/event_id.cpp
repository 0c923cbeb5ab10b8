#include "actors/http/request/event_id.hpp"

#include <sodium.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace redline::api {
namespace {

constexpr std::uint8_t version = 2;
constexpr std::size_t choices_max = 64;
constexpr std::uint64_t count_max = std::uint64_t{1} << 48;  // longer than any answer
constexpr int base64_kind = sodium_base64_VARIANT_URLSAFE_NO_PADDING;
// Flags of a position.
constexpr std::uint64_t begun_bit = 1, over_bit = 2;
constexpr int flag_bits = 2;

class byte_writer {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void fixed(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Returns zeros after the first error.
class byte_reader {
 public:
  explicit byte_reader(std::string_view bytes) : left_(bytes) {}
  std::uint8_t byte() {
    if (left_.empty()) {
      is_wrong_ = true;
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    return value;
  }
  std::uint64_t fixed(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  /// Accepts at most count_max, in the shortest encoding.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 56; shift += 7) {
      const std::uint8_t next = byte();
      value |= std::uint64_t{next & 0x7fU} << shift;
      if (next >= 0x80) continue;
      if ((next == 0 && shift > 0) || value > count_max) break;
      return value;
    }
    is_wrong_ = true;
    return 0;
  }
  void expect(bool holds) { is_wrong_ = is_wrong_ || !holds; }
  [[nodiscard]] bool is_wrong() const { return is_wrong_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  std::string_view left_;
  bool is_wrong_ = false;
};

}  // namespace

bool event_id::is_all(bool include_usage) const {
  return std::all_of(choices.begin(), choices.end(), [](const position& p) { return p.is_over; }) &&
         !wants_usage(include_usage);
}

std::string to_text(const event_id& id) {
  byte_writer out;
  out.byte(version);
  out.fixed(id.response_high, 8);
  out.fixed(id.response_low, 8);
  out.fixed(id.request_digest, 8);
  out.fixed(id.model_digest, 4);
  out.varint(static_cast<std::uint64_t>(std::max<std::int64_t>(id.created_seconds, 0)));
  out.byte(id.usage_sent ? 1 : 0);
  out.varint(id.choices.size());
  for (const auto& p : id.choices) {
    out.varint(p.text_bytes << flag_bits | (p.is_over ? over_bit : 0) | (p.is_begun ? begun_bit : 0));
    out.varint(p.tokens_count);
    if (p.text_bytes > 0) out.fixed(p.text_digest, 4);
    if (p.is_begun) out.fixed(p.numerics, 4);
  }
  const auto& bytes = out.bytes();
  std::string text(sodium_base64_ENCODED_LEN(bytes.size(), base64_kind), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    base64_kind);
  text.pop_back();  // the terminating zero
  return text;
}

std::optional<event_id> parse_event_id(std::string_view text) {
  if (text.size() > event_id_chars_max) return std::nullopt;
  // The library accepts some non-ASCII bytes as letters.
  if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    return std::nullopt;
  }
  std::string bytes(text.size(), '\0');
  std::size_t length = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(), nullptr,
                        &length, nullptr, base64_kind) != 0) {
    return std::nullopt;
  }
  byte_reader in(std::string_view(bytes).substr(0, length));
  in.expect(in.byte() == version);
  event_id id;
  id.response_high = in.fixed(8);
  id.response_low = in.fixed(8);
  id.request_digest = in.fixed(8);
  id.model_digest = static_cast<std::uint32_t>(in.fixed(4));
  id.created_seconds = static_cast<std::int64_t>(in.varint());
  const std::uint8_t usage = in.byte();
  in.expect(usage <= 1);
  id.usage_sent = usage == 1;
  const std::uint64_t count = in.varint();
  in.expect(count >= 1 && count <= choices_max);
  for (std::uint64_t i = 0; i < count && !in.is_wrong(); ++i) {
    event_id::position p;
    const std::uint64_t text_and_flags = in.varint();
    p.text_bytes = text_and_flags >> flag_bits;
    p.is_begun = (text_and_flags & begun_bit) != 0;
    p.is_over = (text_and_flags & over_bit) != 0;
    p.tokens_count = in.varint();
    if (p.text_bytes > 0) p.text_digest = static_cast<std::uint32_t>(in.fixed(4));
    if (p.is_begun) p.numerics = static_cast<std::uint32_t>(in.fixed(4));
    id.choices.push_back(p);
  }
  if (in.is_wrong() || !in.at_end()) return std::nullopt;
  return id;
}

}  // namespace redline::api
