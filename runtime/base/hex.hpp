#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace redline {

/// Sixteen digits in lower case.
[[nodiscard]] std::string to_hex(std::uint64_t number);

/// Appends "\x" and two digits.
void append_hex_escape(std::string& out, char byte);

/// Bytes of unknown origin as an error message may show them: on one line and in ASCII, every other byte as "\x0a", cut
/// after `bytes_max` bytes.
[[nodiscard]] std::string escape_bytes(std::string_view bytes, std::size_t bytes_max = 160);
/// The same in single quotes.
[[nodiscard]] std::string quote_bytes(std::string_view bytes, std::size_t bytes_max = 160);

}  // namespace redline
