#include "runtime/jinja/text.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "runtime/base/utf8.hpp"

namespace redline::jinja {
namespace {

constexpr char32_t sharp_s = 0xDF;

bool is_line_end(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/// str.isprintable() of one code point: false for the categories Other and Separator, except the space.
bool is_printable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

template<class Map>
std::string map_code_points(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    map(out, c.value);
    at += c.size_bytes;
  }
  return out;
}

void append_upper(std::string& out, char32_t c) {
  if (c == sharp_s) {
    out += "SS";
  } else {
    utf8::append(out, to_upper(c));
  }
}

}  // namespace

bool is_python_space(char32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_character(char32_t c) {
  if (c == '_') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return true;
    default:
      return false;
  }
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  return c == sharp_s ? c : static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

bool is_cased(char32_t c) { return to_upper(c) != c || to_lower(c) != c || c == sharp_s; }

std::string upper(std::string_view text) { return map_code_points(text, append_upper); }

std::string lower(std::string_view text) {
  return map_code_points(text, [](std::string& out, char32_t c) { utf8::append(out, to_lower(c)); });
}

std::string capitalize(std::string_view text) {
  bool first = true;
  return map_code_points(text, [&](std::string& out, char32_t c) {
    utf8::append(out, first ? to_upper(c) : to_lower(c));
    first = false;
  });
}

std::string title(std::string_view text) {
  bool after_letter = false;
  return map_code_points(text, [&](std::string& out, char32_t c) {
    utf8::append(out, after_letter ? to_lower(c) : to_upper(c));
    after_letter = is_cased(c);
  });
}

namespace {

/// Byte offset of the last code point of `text`, which must not be empty.
std::size_t last_code_point(std::string_view text) {
  for (std::size_t back = 2; back <= 4 && back <= text.size(); ++back) {
    if (utf8::decode(text, text.size() - back).size_bytes == back) return text.size() - back;
  }
  return text.size() - 1;
}

bool contains(std::string_view characters, char32_t wanted) {
  for (std::size_t at = 0; at < characters.size();) {
    const utf8::code_point c = utf8::decode(characters, at);
    if (c.value == wanted) return true;
    at += c.size_bytes;
  }
  return false;
}

}  // namespace

std::string_view strip(std::string_view text, strip_side side, const std::string_view* characters) {
  const auto goes = [&](char32_t c) { return characters != nullptr ? contains(*characters, c) : is_python_space(c); };
  if (side != strip_side::right) {
    while (!text.empty()) {
      const utf8::code_point c = utf8::decode(text, 0);
      if (!goes(c.value)) break;
      text.remove_prefix(c.size_bytes);
    }
  }
  if (side != strip_side::left) {
    while (!text.empty()) {
      const std::size_t at = last_code_point(text);
      if (!goes(utf8::decode(text, at).value)) break;
      text = text.substr(0, at);
    }
  }
  return text;
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    std::size_t next = at + c.size_bytes;
    if (is_line_end(c.value)) {
      if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      lines.push_back(text.substr(start, (keep_ends ? next : at) - start));
      start = next;
    }
    at = next;
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string python_float(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  const std::string_view shortest(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = shortest.find('e');
  const int exponent = std::atoi(std::string(shortest.substr(e + 1)).c_str());
  std::string sign, digits;
  for (const char c : shortest.substr(0, e)) {
    if (c == '-') sign = "-";
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < -4 || exponent >= 16) return std::string(shortest);
  if (exponent < 0) return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string python_quoted(std::string_view text) {
  const bool double_quotes = text.find('\'') != text.npos && text.find('"') == text.npos;
  const char32_t quote = double_quotes ? '"' : '\'';
  std::string out;
  utf8::append(out, quote);
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    at += c.size_bytes;
    char escaped[16] = "";
    if (c.value == quote || c.value == '\\') {
      out += '\\';
    } else if (c.value == '\n' || c.value == '\r' || c.value == '\t') {
      std::strcpy(escaped, c.value == '\n' ? "\\n" : c.value == '\r' ? "\\r" : "\\t");
    } else if (!is_printable(c.value)) {
      const auto code = static_cast<unsigned>(c.value);
      std::snprintf(escaped, sizeof escaped, code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
    }
    if (*escaped != '\0') {
      out += escaped;
    } else {
      utf8::append(out, c.value);
    }
  }
  utf8::append(out, quote);
  return out;
}

std::string json_quoted(std::string_view text, bool ascii_only) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    at += c.size_bytes;
    const auto escape = [&](char32_t unit) {
      char escaped[16];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(unit));
      out += escaped;
    };
    switch (c.value) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (c.value < 0x20 || (ascii_only && c.value >= 0x7F && c.value < 0x10000)) {
          escape(c.value);
        } else if (ascii_only && c.value >= 0x10000) {
          escape(0xD800 + ((c.value - 0x10000) >> 10));
          escape(0xDC00 + ((c.value - 0x10000) & 0x3FF));
        } else {
          utf8::append(out, c.value);
        }
    }
  }
  return out + "\"";
}

}  // namespace redline::jinja
