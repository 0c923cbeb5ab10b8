#include "runtime/base/terminal_text.hpp"

#include <cstdio>

#include "runtime/base/utf8.hpp"

namespace redline {
namespace {

/// The characters with Unicode's property Bidi_Control.
bool turns_direction(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void append_named(std::string& out, const char* format, char32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, format, static_cast<unsigned>(number));
  out += text;
}

}  // namespace

std::string shown_on_terminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, size] = utf8::decode(text, at);
    if (value == '\t' || value == '\n')
      out += static_cast<char>(value);
    else if (value < 0x20 || value == 0x7F)
      out.append({'^', static_cast<char>(value ^ 0x40)});
    else if (value >= utf8::stray_byte + 0x80 && value <= utf8::stray_byte + 0xFF)
      append_named(out, "<%02X>", value - utf8::stray_byte);
    else if ((value >= 0x80 && value < 0xA0) || turns_direction(value))
      append_named(out, "<U+%04X>", value);
    else
      out += text.substr(at, size);
    at += size;
  }
  return out;
}

}  // namespace redline
