#include "actors/cli/flags/toml_value.hpp"

#include <charconv>
#include <regex>

#include "runtime/base/utf8.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::string_view blanks = " \t\r";
constexpr std::string_view escapes = "b\bt\tn\nf\fr\r\"\"\\\\";  // pairs: the letter, the byte

void skip_blanks(std::string_view& rest) { rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size())); }

/// After the backslash; false when there is no such escape.
bool read_escape(std::string_view& rest, std::string& out) {
  if (rest.empty()) return false;
  const char letter = rest.front();
  rest.remove_prefix(1);
  for (std::size_t i = 0; i < escapes.size(); i += 2) {
    if (escapes[i] != letter) continue;
    out.push_back(escapes[i + 1]);
    return true;
  }
  const std::size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0 || rest.size() < digits) return false;
  std::uint32_t c = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, c, 16);
  if (error != std::errc() || end != rest.data() + digits || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return false;
  utf8::append(out, c);
  rest.remove_prefix(digits);
  return true;
}

std::optional<std::string> read_string(std::string_view& rest) {
  const char quote = rest.front();
  rest.remove_prefix(1);
  std::string out;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == quote) return out;
    if (c != '\\' || quote == '\'')
      out.push_back(c);
    else if (!read_escape(rest, out))
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::string> read_item(std::string_view& rest) {
  if (rest.starts_with('"') || rest.starts_with('\'')) return read_string(rest);
  const std::string_view bare = rest.substr(0, rest.find_first_of(",] \t\r#"));
  if (bare.empty() || bare.front() == '[') return std::nullopt;
  rest.remove_prefix(bare.size());
  return std::string(bare);
}

}  // namespace

std::string toml_string(const std::string& text) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    std::size_t at = 0;
    while (at < escapes.size() && escapes[at + 1] != c) at += 2;
    if (at < escapes.size())
      out.append({'\\', escapes[at]});
    else if (byte < 0x20 || byte == 0x7F)
      out.append("\\u00").append({digits[byte >> 4], digits[byte & 15]});
    else
      out.push_back(c);
  }
  return out + "\"";
}

std::string toml_scalar(const std::string& text) {
  static const std::regex number(R"(-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?)");
  return std::regex_match(text, number) ? text : toml_string(text);
}

std::string toml_array(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + toml_string(text);
  return out + "]";
}

std::optional<std::vector<std::string>> read_toml_value(std::string_view text) {
  std::vector<std::string> out;
  skip_blanks(text);
  if (text.starts_with('"') || text.starts_with('\'')) {
    auto one = read_string(text);
    if (!one) return std::nullopt;
    out.push_back(std::move(*one));
  } else if (text.starts_with('[')) {
    text.remove_prefix(1);
    for (skip_blanks(text); !text.starts_with(']'); skip_blanks(text)) {
      auto one = read_item(text);
      if (!one) return std::nullopt;
      out.push_back(std::move(*one));
      skip_blanks(text);
      if (text.starts_with(','))
        text.remove_prefix(1);
      else if (!text.starts_with(']'))
        return std::nullopt;
    }
    text.remove_prefix(1);
  } else {
    return std::nullopt;
  }
  skip_blanks(text);
  if (!text.empty() && !text.starts_with('#')) return std::nullopt;
  return out;
}

}  // namespace redline::actors::cli
