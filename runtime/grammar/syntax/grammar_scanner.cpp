#include "runtime/grammar/syntax/grammar_scanner.hpp"

#include <algorithm>

#include "runtime/base/hex.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::grammar {

void grammar_scanner::refuse(const std::string& what, std::size_t line) {
  if (!why_) why_ = failure{errc::invalid_argument, "grammar, line " + std::to_string(line) + ": " + what};
}

std::string grammar_scanner::rest_of_line() const {
  if (is_over()) return "the end";
  const auto rest = text_.substr(at_, std::min<std::size_t>(16, text_.find('\n', at_) - at_));
  return "'" + utf8::sanitize(rest) + "'";
}

std::uint32_t grammar_scanner::read_number() {
  std::uint32_t n = 0;
  for (; is_digit(peek()); ++at_)
    n = std::min<std::uint32_t>(1U << 20, n * 10 + static_cast<std::uint32_t>(peek() - '0'));
  return n;
}

char32_t grammar_scanner::read_plain() {
  const auto c = utf8::decode(text_, at_);
  at_ += c.size_bytes;
  if (c.value >= 0xd800 && c.value <= 0xdfff) refuse("expected UTF-8");
  return c.value;
}

char32_t grammar_scanner::read_hex(int digits) {
  char32_t value = 0;
  for (int i = 0; i < digits; ++i, ++at_) {
    const int digit = hex_digit(peek());
    if (digit < 0) {
      refuse("expected " + std::to_string(digits) + " hexadecimal digits");
      return 0;
    }
    value = value * 16 + static_cast<char32_t>(digit);
  }
  if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) refuse("expected a character of Unicode");
  return value;
}

char32_t grammar_scanner::read_escaped(std::string_view themselves) {
  const char c = peek();
  ++at_;
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'x':
      return read_hex(2);
    case 'u':
      return read_hex(4);
    case 'U':
      return read_hex(8);
    default:
      if (themselves.find(c) == std::string_view::npos) refuse("an unknown escape after '\\'");
      return static_cast<unsigned char>(c);
  }
}

bool grammar_scanner::are_bounds(std::uint32_t least, std::uint32_t most) {
  return least <= most && least <= grammar_rules::repeats_max &&
         (most == UINT32_MAX || most <= grammar_rules::repeats_max);
}

std::uint32_t grammar_scanner::rule_of(const std::string& name) {
  const auto [at, is_new] = by_name_.try_emplace(name, static_cast<std::uint32_t>(rules_.size()));
  if (is_new) rules_.push_back({.name = name, .line = line_});
  if (rules_.size() > grammar_rules::rules_max)
    refuse("expected at most " + std::to_string(grammar_rules::rules_max) + " rules");
  return at->second;
}

std::optional<std::uint32_t> grammar_scanner::begin_rule(const std::string& name, std::size_t line) {
  const auto number = rule_of(name);
  if (rules_[number].is_written) refuse("the rule '" + name.substr(0, 64) + "' is written twice", line);
  if (why_) return std::nullopt;
  rules_[number].is_written = true;
  rules_[number].line = line;
  return number;
}

result<grammar_rules> grammar_scanner::finish(std::string_view root) {
  const auto first = by_name_.find(std::string(root));
  if (!why_ && (first == by_name_.end() || !rules_[first->second].is_written))
    refuse("expected a rule named '" + std::string(root) + "'");
  for (const auto& one : rules_) {
    if (!one.is_written) refuse("there is no rule '" + one.name.substr(0, 64) + "'", one.line);
  }
  if (why_) return *why_;
  return grammar_rules{std::move(rules_), first->second};
}

}  // namespace redline::grammar
