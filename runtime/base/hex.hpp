#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redline {

/// Sixteen digits in lower case.
[[nodiscard]] std::string to_hex(std::uint64_t number);

/// What a digit of either case stands for; -1: it is none.
[[nodiscard]] constexpr int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// With each %XX as the byte XX. Nothing where one is cut short, has other characters, or is a zero byte.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

/// Appends "\x" and two digits.
void append_hex_escape(std::string& out, char byte);

/// Bytes of unknown origin as an error message may show them: on one line and in ASCII, every other byte as "\x0a", cut
/// after `bytes_max` bytes.
[[nodiscard]] std::string escape_bytes(std::string_view bytes, std::size_t bytes_max = 160);
/// The same in single quotes.
[[nodiscard]] std::string quote_bytes(std::string_view bytes, std::size_t bytes_max = 160);

}  // namespace redline
