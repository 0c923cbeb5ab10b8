#include "runtime/grammar/syntax/gbnf_reader.hpp"

#include <algorithm>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/syntax/grammar_scanner.hpp"

namespace redline::grammar {
namespace {

class gbnf_reader : grammar_scanner {
 public:
  explicit gbnf_reader(std::string_view text) : grammar_scanner(text) {}

  result<grammar_rules> read() {
    for (skip_whitespace(true); !why_ && !is_over(); skip_whitespace(true)) read_rule();
    return finish("root");
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  }
  void skip_whitespace(bool over_lines) {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (at_ == text_.size()) return;
        --at_;
        continue;
      }
      if (c == '\n' && over_lines) ++line_;
      if (c != ' ' && c != '\t' && c != '\r' && (c != '\n' || !over_lines)) return;
    }
  }
  std::string read_name() {
    const std::size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  void read_rule() {
    const std::size_t line = line_;
    const std::string name = read_name();
    skip_whitespace(true);
    if (name.empty() || !looks_at("::=")) {
      // A rule with one colon, or what only Lark has before a rule: ?name, !name, %import, // a comment.
      const bool is_lark =
          name.empty() ? std::string_view("?!%/").find(peek()) != std::string_view::npos : peek() == ':';
      return refuse(is_lark ? "expected a rule: NAME ::= ..., found one in Lark among those in GBNF"
                            : "expected a rule: NAME ::= ...",
                    line);
    }
    at_ += 3;
    const auto number = begin_rule(name, line);
    if (!number) return;
    skip_whitespace(true);
    part right = read_choice(0);
    if (why_) return;
    if (!is_over() && peek() != '\n')
      return refuse("expected the end of the rule '" + name + "', found " + rest_of_line());
    rules_[*number].right = std::move(right);
  }

  part read_choice(std::size_t depth) {
    part out{.what = part::kind::choice};
    if (depth > depth_of_groups_max) refuse("groups are nested too deeply");
    for (;;) {
      out.parts.push_back(read_sequence(depth));
      if (why_) return out;
      // The bar may begin the next line.
      const std::size_t at = at_, line = line_;
      skip_whitespace(true);
      if (peek() == '|') {
        ++at_;
        skip_whitespace(true);
        continue;
      }
      if (depth == 0) at_ = at, line_ = line;
      return out;
    }
  }

  part read_sequence(std::size_t depth) {
    part out{.what = part::kind::sequence};
    for (;;) {
      skip_whitespace(depth > 0);
      const char c = peek();
      if (at_ >= text_.size() || c == '|' || c == ')' || c == '\n') return out;
      part one;
      if (c == '"') {
        one = read_literal();
      } else if (c == '[') {
        one = read_class();
      } else if (c == '.') {
        ++at_;
        one = {.what = part::kind::characters, .ranges = tidy({}, true)};
      } else if (c == '(') {
        ++at_;
        skip_whitespace(true);
        one = read_choice(depth + 1);
        if (!why_ && peek() != ')') refuse("expected ')'");
        ++at_;
      } else if (is_name(c)) {
        one = {.what = part::kind::rule};
        one.rule = rule_of(read_name());
      } else if (c == '<') {
        refuse("tokens ('<...>') are not supported: write their text");
      } else {
        refuse("expected a text, a class, a group or a rule's name, found '" + utf8::sanitize(text_.substr(at_, 1)) +
               "'");
      }
      if (!why_) read_repeat(one);
      if (why_) return out;
      out.parts.push_back(std::move(one));
    }
  }

  void read_repeat(part& one) {
    for (std::size_t in_a_row = 0;;) {
      skip_whitespace(false);
      std::uint32_t least = 0, most = UINT32_MAX;
      const char c = peek();
      if (c == '{') {
        ++at_;
        if (!read_bounds(least, most)) return;
      } else if (c == '*' || c == '+' || c == '?') {
        ++at_;
        if (c == '+') least = 1;
        if (c == '?') most = 1;
      } else {
        return;
      }
      part again{.what = part::kind::repeat, .least = least, .most = most};
      again.parts.push_back(std::move(one));
      one = std::move(again);
      if (++in_a_row > 8) return refuse("too many repetitions of a repetition");
    }
  }
  bool read_bounds(std::uint32_t& least, std::uint32_t& most) {
    const auto number = [this](std::uint32_t otherwise) {
      skip_whitespace(false);
      if (!is_digit(peek())) return otherwise;
      const auto n = read_number();
      skip_whitespace(false);
      return n;
    };
    least = number(0);
    most = least;
    if (peek() == ',') {
      ++at_;
      most = number(UINT32_MAX);
    }
    if (peek() != '}' || !are_bounds(least, most)) {
      refuse("expected {m}, {m,} or {m,n} with m up to n and both up to " + std::to_string(grammar_rules::repeats_max));
      return false;
    }
    ++at_;
    return true;
  }

  /// Reads one character of a text or a class, which may be escaped.
  char32_t read_character() {
    if (peek() != '\\') return read_plain();
    ++at_;
    return read_escaped(R"(\"[]-^/')");
  }
  part read_literal() {
    part out{.what = part::kind::literal};
    ++at_;
    while (!why_ && at_ < text_.size() && peek() != '"' && peek() != '\n') utf8::append(out.text, read_character());
    if (peek() != '"') refuse("a text does not end on its line");
    ++at_;
    return out;
  }
  part read_class() {
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    std::vector<code_range> ranges;
    while (!why_ && at_ < text_.size() && peek() != ']' && peek() != '\n') {
      code_range r;
      r.first = r.last = read_character();
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        r.last = read_character();
      }
      if (r.first > r.last) refuse("a range of a class ends before it begins");
      ranges.push_back(r);
    }
    if (peek() != ']') refuse("a class does not end on its line");
    ++at_;
    return {.what = part::kind::characters, .ranges = tidy(std::move(ranges), negated)};
  }
};

}  // namespace

result<grammar_rules> read_gbnf(std::string_view text) { return gbnf_reader(text).read(); }

}  // namespace redline::grammar
