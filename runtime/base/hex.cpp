#include "runtime/base/hex.hpp"

namespace redline {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

}  // namespace

std::string to_hex(std::uint64_t number) {
  std::string out(16, '0');
  for (std::size_t i = out.size(); i > 0; number >>= 4) out[--i] = digits[number & 15];
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
    out.push_back(static_cast<char>(high << 4 | low));
    i += 2;
  }
  return out;
}

void append_hex_escape(std::string& out, char byte) {
  const auto value = static_cast<unsigned char>(byte);
  out.append("\\x").append(1, digits[value >> 4]).append(1, digits[value & 15]);
}

std::string escape_bytes(std::string_view bytes, std::size_t bytes_max) {
  std::string out;
  for (const char c : bytes.substr(0, bytes_max)) {
    if (c >= 0x20 && c < 0x7f) {
      out.push_back(c);
    } else {
      append_hex_escape(out, c);
    }
  }
  if (bytes.size() > bytes_max) out += "...";
  return out;
}

std::string quote_bytes(std::string_view bytes, std::size_t bytes_max) {
  return "'" + escape_bytes(bytes, bytes_max) + "'";
}

}  // namespace redline
