#include "runtime/jinja/lexer.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/text.hpp"
#include "runtime/jinja/value.hpp"

namespace redline::jinja {
namespace {

using tk = token::kind;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || is_digit(c); }

/// Replaces "\r\n" and "\r" by "\n", and removes one newline at the end.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class lexer {
 public:
  explicit lexer(std::string_view source) : source_(normalized(source)), text_(source_) {}

  std::vector<token> run() {
    while (at_ < text_.size()) {
      lex_text();
    }
    push(tk::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(std::string what) const { throw error{std::move(what), errc::invalid_template, line_}; }
  [[nodiscard]] bool starts(std::string_view with) const { return text_.substr(at_).starts_with(with); }

  void push(tk type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  /// Advances, counting lines and remembering whether the last byte was a newline.
  void advance(std::size_t bytes) {
    const std::string_view passed = text_.substr(at_, bytes);
    line_ += static_cast<std::uint32_t>(std::count(passed.begin(), passed.end(), '\n'));
    if (!passed.empty()) at_line_start_ = passed.back() == '\n';
    at_ += bytes;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const utf8::code_point c = utf8::decode(text_, at_);
      if (!is_python_space(c.value)) return;
      advance(c.size_bytes);
    }
  }

  /// Takes the end of a tag with its optional sign and the whitespace it removes. Returns false if it is not here.
  bool take_tag_end(std::string_view close, bool is_block) {
    if (starts("-" + std::string(close))) {
      advance(1 + close.size());
      skip_space();
      return true;
    }
    if (is_block && starts("+" + std::string(close))) {
      advance(1 + close.size());
      return true;
    }
    if (!starts(close)) return false;
    advance(close.size());
    if (is_block && starts("\n")) advance(1);
    return true;
  }

  /// Applies a tag's whitespace rules to the text before it.
  [[nodiscard]] std::string_view before_tag(std::string_view data, char sign, bool is_print, bool line_start) const {
    if (sign == '-') return strip(data, strip_side::right);
    if (sign == '+' || is_print) return data;
    const std::size_t newline = data.rfind('\n');
    const std::size_t last_line = newline == data.npos ? 0 : newline + 1;
    if (last_line == 0 && !line_start) return data;
    return strip(data.substr(last_line), strip_side::both).empty() ? data.substr(0, last_line) : data;
  }

  void push_data(std::string_view data, std::uint32_t line) {
    if (!data.empty()) tokens_.push_back({tk::data, std::string(data), line});
  }

  void lex_text() {
    std::size_t open = at_;
    while (true) {
      open = text_.find('{', open);
      if (open == text_.npos || open + 1 >= text_.size()) {
        push_data(text_.substr(at_), line_);
        advance(text_.size() - at_);
        return;
      }
      if (const char c = text_[open + 1]; c == '{' || c == '%' || c == '#') break;
      ++open;
    }
    const std::string_view data = text_.substr(at_, open - at_);
    const char type = text_[open + 1];
    const char after = open + 2 < text_.size() ? text_[open + 2] : '\0';
    const char sign = after == '-' || after == '+' ? after : '\0';
    push_data(before_tag(data, sign, type == '{', at_line_start_), line_);
    advance(data.size());
    const std::uint32_t line = line_;
    advance(sign != '\0' ? 3 : 2);
    if (type == '#') return skip_comment(line);
    if (type == '%' && take_raw_begin()) return lex_raw(line);
    push(type == '{' ? tk::print_begin : tk::block_begin, "");
    lex_code(type == '{' ? "}}" : "%}", type != '{', line);
  }

  void skip_comment(std::uint32_t line) {
    const std::size_t close = text_.find("#}", at_);
    if (close == text_.npos) {
      line_ = line;
      fail("expected `#}` at the end of a comment, found the end of the template");
    }
    // A sign belongs to the end only if the comment is long enough for it.
    const bool sign = close > at_ && (text_[close - 1] == '-' || text_[close - 1] == '+');
    advance(close - at_ - (sign ? 1 : 0));
    take_tag_end("#}", true);
  }

  bool take_raw_begin() {
    const std::size_t at = at_;
    const std::uint32_t line = line_;
    const bool line_start = at_line_start_;
    skip_space();
    if (starts("raw")) {
      advance(3);
      skip_space();
      if (starts("-%}")) {
        advance(3);
        skip_space();
        return true;
      }
      if (starts("%}")) {
        advance(2);
        return true;
      }
    }
    at_ = at, line_ = line, at_line_start_ = line_start;
    return false;
  }

  void lex_raw(std::uint32_t line) {
    const std::size_t start = at_;
    const std::uint32_t data_line = line_;
    const bool line_start = at_line_start_;
    for (std::size_t open = text_.find("{%", at_); open != text_.npos; open = text_.find("{%", open + 1)) {
      advance(open - at_);
      const char sign =
          open + 2 < text_.size() && (text_[open + 2] == '-' || text_[open + 2] == '+') ? text_[open + 2] : '\0';
      advance(sign != '\0' ? 3 : 2);
      skip_space();
      if (!starts("endraw")) {
        rewind_to(open);
        continue;
      }
      advance(6);
      skip_space();
      if (!take_tag_end("%}", true)) {
        rewind_to(open);
        continue;
      }
      push_data(before_tag(text_.substr(start, open - start), sign, false, line_start), data_line);
      return;
    }
    line_ = line;
    fail("expected `{% endraw %}` for the raw block, found the end of the template");
  }

  void rewind_to(std::size_t open) {
    line_ -= static_cast<std::uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(open),
                                                   text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
    at_ = open;
  }

  void lex_code(std::string_view close, bool is_block, std::uint32_t line) {
    std::string brackets;  // the expected closing brackets
    while (true) {
      if (brackets.empty() && take_tag_end(close, is_block)) {
        push(is_block ? tk::block_end : tk::print_end, "");
        return;
      }
      if (at_ >= text_.size()) {
        line_ = line;
        fail("expected `" + std::string(close) + "` at the end of a tag, found the end of the template");
      }
      const utf8::code_point c = utf8::decode(text_, at_);
      if (is_python_space(c.value)) {
        advance(c.size_bytes);
      } else if (is_digit(text_[at_])) {
        lex_number();
      } else if (is_name_start(text_[at_])) {
        lex_name();
      } else if (text_[at_] == '\'' || text_[at_] == '"') {
        lex_string();
      } else {
        lex_symbol(brackets);
      }
    }
  }

  void lex_name() {
    std::size_t end = at_;
    while (end < text_.size() && is_name_part(text_[end])) ++end;
    push(tk::name, std::string(text_.substr(at_, end - at_)));
    advance(end - at_);
  }

  /// The end of digits with single underscores between them, from `at`.
  template<class IsDigit>
  [[nodiscard]] std::size_t digits_end(std::size_t at, IsDigit is_part) const {
    while (at < text_.size()) {
      if (is_part(text_[at])) {
        ++at;
      } else if (text_[at] == '_' && at + 1 < text_.size() && is_part(text_[at + 1])) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  void lex_number() {
    const char base = at_ + 1 < text_.size() ? static_cast<char>(std::tolower(text_[at_ + 1])) : '\0';
    if (text_[at_] == '0' && (base == 'x' || base == 'o' || base == 'b')) {
      const std::size_t end = digits_end(at_ + 2, [base](char c) {
        return base == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0
                           : c >= '0' && c < (base == 'o' ? '8' : '2');
      });
      if (end > at_ + 2) return push_number(tk::integer, end);
    }
    std::size_t end = digits_end(at_, is_digit);
    bool real = false;
    // Digits after a dot are an index, as in `row.0.1`.
    const bool index =
        !tokens_.empty() && tokens_.back().type == tk::symbol && tokens_.back().text == "." && text_[at_ - 1] == '.';
    if (!index && end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
      end = digits_end(end + 1, is_digit);
      real = true;
    }
    if (!index && end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < text_.size() && (text_[digits] == '+' || text_[digits] == '-')) ++digits;
      if (digits < text_.size() && is_digit(text_[digits])) {
        end = digits_end(digits, is_digit);
        real = true;
      }
    }
    push_number(real ? tk::real : tk::integer, end);
  }

  void push_number(tk type, std::size_t end) {
    std::string digits(text_.substr(at_, end - at_));
    std::erase(digits, '_');
    const bool decimal = type == tk::integer && std::all_of(digits.begin(), digits.end(), is_digit);
    if (decimal && digits.front() == '0' && digits.find_first_not_of('0') != digits.npos) {
      fail("expected a number without leading zeros, found `" + digits.substr(0, 40) + "`");
    }
    push(type, std::move(digits));
    advance(end - at_);
  }

  void lex_string() {
    const char quote = text_[at_];
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) fail("expected the end of a string, found the end of the template");
    const std::uint32_t line = line_;
    std::string text = unescaped(text_.substr(at_ + 1, end - at_ - 1));
    tokens_.push_back({tk::string, std::move(text), line});
    advance(end + 1 - at_);
  }

  [[nodiscard]] std::string unescaped(std::string_view raw) const {
    std::string out;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      if (raw[i] != '\\') {
        out += raw[i];
        continue;
      }
      const char c = raw[++i];  // a backslash is never the last byte, because it would have escaped the quote
      static constexpr std::string_view from = "\\'\"abfnrtv", to = "\\'\"\a\b\f\n\r\t\v";
      if (const auto simple = from.find(c); simple != from.npos) {
        out += to[simple];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        const std::size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        i += append_number(out, raw.substr(i + 1), count, 16, c);
      } else if (c >= '0' && c < '8') {
        std::size_t count = 1;
        while (count < 3 && i + count < raw.size() && raw[i + count] >= '0' && raw[i + count] < '8') ++count;
        append_number(out, raw.substr(i), count, 8, c);
        i += count - 1;
      } else if (c == 'N') {
        fail("expected a known string escape, found \\N{...}, which is not supported");
      } else if (c != '\n') {
        out += '\\';
        out += c;
      }
    }
    return out;
  }

  std::size_t append_number(std::string& out, std::string_view digits, std::size_t count, int base, char escape) const {
    char32_t code = 0;
    std::size_t used = 0;
    for (; used < count && used < digits.size(); ++used) {
      const char c = digits[used];
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) break;
      code = code * static_cast<char32_t>(base) + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 32) - 'a' + 10);
    }
    if (used < count || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      fail(std::string("expected a Unicode character after \\") + escape + " in a string");
    }
    utf8::append(out, code);
    return used;
  }

  void lex_symbol(std::string& brackets) {
    static constexpr std::string_view symbols[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                   "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                   ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};
    for (const std::string_view symbol : symbols) {
      if (!starts(symbol)) continue;
      const char c = symbol.front();
      if (c == '(' || c == '[' || c == '{') brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
      if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty()) fail(std::string("found `") + c + "` without its opening bracket");
        if (brackets.back() != c) fail(std::string("expected `") + brackets.back() + "`, found `" + c + "`");
        brackets.pop_back();
      }
      push(tk::symbol, std::string(symbol));
      advance(symbol.size());
      return;
    }
    fail("found a character that cannot stand in a tag: " + python_quoted(text_.substr(at_, 1)));
  }

  std::string source_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool at_line_start_ = true;
  std::vector<token> tokens_;
};

}  // namespace

std::vector<token> tokenize(std::string_view source) { return lexer(source).run(); }

}  // namespace redline::jinja
