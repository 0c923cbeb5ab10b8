#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redline {

/// Formats sixteen lower-case digits.
[[nodiscard]] std::string to_hex(std::uint64_t number);

/// The value of a digit in either case; -1 for any other character.
[[nodiscard]] constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Replaces each %XX by the byte XX. nullopt if one is cut short, has other characters, or encodes a zero byte.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// Appends "\x" and two digits.
void append_hex_escape(std::string& out, char byte);

/// Shows untrusted bytes in an error message: on one line and in ASCII, every other byte as "\x0a", cut after
/// `bytes_max` bytes.
[[nodiscard]] std::string escape_bytes(std::string_view bytes, std::size_t bytes_max = 160);
/// Calls escape_bytes and adds single quotes.
[[nodiscard]] std::string quote_bytes(std::string_view bytes, std::size_t bytes_max = 160);

}  // namespace redline
