#include "runtime/grammar/syntax/lark_reader.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/syntax/grammar_scanner.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {
namespace {

constexpr std::string_view ignored_rule = "%ignore";  // no rule of a grammar can have this name
constexpr std::string_view start_rule = "start";

struct common_terminal {
  std::string_view name;
  std::string_view expression;
};

#define INTEGER "[0-9]+"
#define DECIMAL_TEXT "([0-9]+\\.[0-9]*|\\.[0-9]+)"
#define EXPONENT "[eE][+-]?[0-9]+"
#define FLOAT_TEXT "([0-9]+" EXPONENT "|" DECIMAL_TEXT "(" EXPONENT ")?)"

/// The terminals that `%import common.NAME` can import.
constexpr common_terminal common_terminals[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9a-fA-F]"},
    {"INT", INTEGER},
    {"SIGNED_INT", "[+-]?" INTEGER},
    {"DECIMAL", DECIMAL_TEXT},
    {"FLOAT", FLOAT_TEXT},
    {"SIGNED_FLOAT", "[+-]?" FLOAT_TEXT},
    {"NUMBER", "(" FLOAT_TEXT "|" INTEGER ")"},
    {"SIGNED_NUMBER", "[+-]?(" FLOAT_TEXT "|" INTEGER ")"},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[a-zA-Z]"},
    {"WORD", "[a-zA-Z]+"},
    {"CNAME", "[_a-zA-Z][_a-zA-Z0-9]*"},
    // On one line; a backslash escapes the next character.
    {"ESCAPED_STRING", "\"([^\"\\\\\\n]|\\\\[^\\n])*\""},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
    {"C_COMMENT", "/\\*([^*]|\\*+[^*/])*\\*+/"},
    {"SQL_COMMENT", "--[^\\n]*"},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class lark_reader : grammar_scanner {
 public:
  lark_reader(std::string_view text, step_count& steps)
      : grammar_scanner(text), steps_(steps), ignored_(rule_of(std::string(ignored_rule))) {}

  result<grammar_rules> read() {
    for (skip_whitespace(true); !why_ && !is_over(); skip_whitespace(true)) {
      if (peek() == '%') {
        read_statement();
      } else {
        read_definition();
      }
      skip_whitespace(false);
      if (!why_ && !is_over() && peek() != '\n') refuse("expected the end of the line, found " + rest_of_line());
    }
    if (!why_) refuse_recursive_terminals();
    rules_[ignored_].is_written = true;
    auto read = finish(start_rule);
    if (read) begin_with_ignored(*read);
    return read;
  }

  /// Implements looks_like_lark.
  bool is_lark() {
    skip_whitespace(true);
    if (is_over()) return false;
    if (peek() == '?' || peek() == '!' || peek() == '%') return true;
    if (read_name().empty()) return false;
    skip_whitespace(true);
    return (peek() == ':' && !looks_at("::=")) || peek() == '.' || peek() == '{' || peek() == '[';
  }

 private:
  bool spend(std::size_t steps = 1) {
    steps_.add(steps);
    if (steps_.is_over()) refuse("the grammar takes too long to read: write it with fewer and smaller parts");
    return !why_;
  }

  void skip_whitespace(bool over_lines) {
    for (; !is_over(); ++at_) {
      const char c = peek();
      if (c == '#' || looks_at("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
        if (is_over()) return;
        --at_;
        continue;
      }
      if (c == '\n' && over_lines) ++line_;
      if (c != ' ' && c != '\t' && c != '\r' && c != '\f' && (c != '\n' || !over_lines)) return;
    }
  }
  [[nodiscard]] bool is_at_name() const { return is_letter(peek()) || peek() == '_'; }
  /// Names may have hyphens, which Lark itself does not allow but grammars for other engines have. An arrow is none.
  std::string read_name() {
    const std::size_t from = at_;
    const auto goes_on = [](char c) { return is_letter(c) || c == '_' || is_digit(c); };
    if (is_at_name()) {
      while (goes_on(peek()) || (peek() == '-' && goes_on(peek(1)))) ++at_;
    }
    return std::string(text_.substr(from, at_ - from));
  }
  /// Decides by the first letter of a name, as Lark does.
  static bool is_terminal(std::string_view name) {
    const auto at = name.find_first_not_of('_');
    return at != std::string_view::npos && name[at] >= 'A' && name[at] <= 'Z';
  }

  // ---- statements ----

  void read_statement() {
    ++at_;
    const std::string what = read_name();
    skip_whitespace(false);
    if (what == "ignore") return read_ignore();
    if (what == "import") return read_import();
    refuse("'%" + what.substr(0, 64) + "' is not supported: of statements %ignore and %import are");
  }
  void read_ignore() {
    in_terminal_ = true;
    part one = read_choice(0);
    in_terminal_ = false;
    ignores_.push_back(std::move(one));
  }
  /// Reads common.NAME, common.NAME -> OTHER, or common (NAME, ...).
  void read_import() {
    const std::string library = read_name();
    skip_whitespace(false);
    if (library != "common" || (peek() != '.' && peek() != '('))
      return refuse("only terminals of the library 'common' can be imported: %import common.NAME");
    const bool is_list = peek() == '(';
    do {
      ++at_;
      skip_whitespace(is_list);
      const std::size_t line = line_;
      const std::string name = read_name();
      skip_whitespace(is_list);
      std::string alias = name;
      if (!is_list && looks_at("->")) {
        at_ += 2;
        skip_whitespace(false);
        alias = read_name();
      }
      add_common(name, alias, line);
    } while (!why_ && is_list && peek() == ',');
    if (!is_list) return;
    if (!why_ && peek() != ')') refuse("expected ')'");
    ++at_;
  }
  void add_common(const std::string& name, const std::string& alias, std::size_t line) {
    const auto* known = std::find_if(std::begin(common_terminals), std::end(common_terminals),
                                     [&](const auto& one) { return one.name == name; });
    if (known == std::end(common_terminals))
      return refuse("the library 'common' has no terminal '" + name.substr(0, 64) + "'", line);
    if (!is_terminal(alias)) return refuse("expected a terminal's name, in capitals", line);
    const auto number = begin_rule(alias, line);
    if (number) rules_[*number].right = expression_of(known->expression, {});
  }

  // ---- rules and terminals ----

  void read_definition() {
    const std::size_t line = line_;
    while (peek() == '?' || peek() == '!') ++at_;
    const std::string name = read_name();
    if (name.empty()) return refuse("expected a rule: NAME: ..., found " + rest_of_line());
    if (peek() == '{') return refuse("templates ('" + name.substr(0, 64) + "{...}') are not supported");
    if (peek() == '[') return refuse("attributes ('" + name.substr(0, 64) + "[...]') are not supported");
    if (peek() == '.') {
      ++at_;
      if (peek() == '-') ++at_;
      if (!is_digit(peek())) return refuse("expected a priority: " + name.substr(0, 64) + ".NUMBER");
      (void)read_number();
    }
    skip_whitespace(true);
    if (looks_at("::=")) return refuse("expected a rule: NAME: ..., found one in GBNF among those in Lark");
    if (peek() != ':') return refuse("expected a rule: NAME: ..., found " + rest_of_line());
    ++at_;
    const auto number = begin_rule(name, line);
    if (!number) return;
    in_terminal_ = is_terminal(name);
    part right = read_choice(0);
    if (in_terminal_) terminals_.push_back(*number);
    in_terminal_ = false;
    rules_[*number].right = std::move(right);
  }

  part read_choice(std::size_t depth) {
    part out{.what = part::kind::choice};
    if (depth > depth_of_groups_max) refuse("groups are nested too deeply");
    for (skip_whitespace(depth > 0); !why_;) {
      out.parts.push_back(read_sequence(depth));
      if (why_) break;
      // The bar may begin the next line.
      const std::size_t at = at_, line = line_;
      skip_whitespace(true);
      if (peek() != '|') {
        if (depth == 0) at_ = at, line_ = line;
        break;
      }
      ++at_;
      skip_whitespace(depth > 0);  // outside of groups, a bar that ends a line begins an empty alternative
    }
    return out;
  }

  /// Reads a sequence, and skips the name that its tree would have.
  part read_sequence(std::size_t depth) {
    part out{.what = part::kind::sequence};
    while (spend()) {
      skip_whitespace(depth > 0);
      const char c = peek();
      if (is_over() || c == '|' || c == ')' || c == ']' || c == '\n') break;
      if (looks_at("->")) {
        at_ += 2;
        skip_whitespace(false);
        if (read_name().empty()) refuse("expected a name after '->'");
        skip_whitespace(depth > 0);
        const char end = peek();
        if (!is_over() && end != '|' && end != ')' && end != ']' && end != '\n')
          refuse("expected the end of the alternative after its name, found " + rest_of_line());
        break;
      }
      part one = read_atom(depth);
      if (!why_) read_repeat(one);
      out.parts.push_back(std::move(one));
    }
    return out;
  }

  part read_atom(std::size_t depth) {
    const char c = peek();
    if (c == '(' || c == '[') {
      ++at_;
      part inside = read_choice(depth + 1);
      const char close = c == '(' ? ')' : ']';
      if (!why_ && peek() != close) refuse(std::string("expected '") + close + "', found " + rest_of_line());
      ++at_;
      return c == '(' ? inside : repeated(std::move(inside), 0, 1);
    }
    if (c == '"') return terminal(read_text());
    if (c == '/') return terminal(read_expression());
    if (is_at_name()) {
      const std::string name = read_name();
      if (peek() == '{') refuse("templates ('" + name.substr(0, 64) + "{...}') are not supported");
      if (in_terminal_ && !is_terminal(name))
        refuse("a terminal is made of terminals, and '" + name.substr(0, 64) + "' is a rule");
      part one{.what = part::kind::rule};
      one.rule = rule_of(name);
      return is_terminal(name) ? terminal(std::move(one)) : one;
    }
    if (c == '<') {
      refuse("tokens ('<...>') are not supported: write their text");
    } else if (c == '%') {
      refuse(rest_of_line() + " is not supported inside of a rule");
    } else {
      refuse("expected a text, an expression, a group or a name, found " + rest_of_line());
    }
    return {};
  }
  /// A terminal in a rule, which ignored text may follow.
  part terminal(part one) {
    if (in_terminal_) return one;
    part out{.what = part::kind::sequence};
    out.parts.push_back(std::move(one));
    out.parts.push_back({.what = part::kind::rule, .rule = ignored_});
    return out;
  }
  static part repeated(part one, std::uint32_t least, std::uint32_t most) {
    part out{.what = part::kind::repeat, .least = least, .most = most};
    out.parts.push_back(std::move(one));
    return out;
  }

  void read_repeat(part& one) {
    skip_whitespace(false);
    const char c = peek();
    if (c == '*' || c == '+' || c == '?') {
      ++at_;
      one = repeated(std::move(one), c == '+' ? 1 : 0, c == '?' ? 1 : UINT32_MAX);
    } else if (c == '~') {
      ++at_;
      skip_whitespace(false);
      const bool has_least = is_digit(peek());
      const std::uint32_t least = read_number();
      std::uint32_t most = least;
      skip_whitespace(false);
      bool has_most = true;
      if (looks_at("..")) {
        at_ += 2;
        skip_whitespace(false);
        has_most = is_digit(peek());
        most = read_number();
      }
      if (!has_least || !has_most || !are_bounds(least, most))
        return refuse("expected ~n or ~n..m with n up to m and both up to " +
                      std::to_string(grammar_rules::repeats_max));
      one = repeated(std::move(one), least, most);
    } else {
      return;
    }
    skip_whitespace(false);
    if (!is_over() && std::string_view("*+?~").find(peek()) != std::string_view::npos)
      refuse("a repetition of a repetition needs a group");
  }

  // ---- texts ----

  /// Reads "...", "..."i or "a".."z".
  part read_text() {
    const std::string text = read_quoted();
    if (peek() == 'i') {
      ++at_;
      return in_any_case(text);
    }
    const std::size_t at = at_;
    skip_whitespace(false);
    if (!looks_at("..")) {
      at_ = at;
      return {.what = part::kind::literal, .text = text};
    }
    at_ += 2;
    skip_whitespace(false);
    if (peek() != '"') refuse("expected a range: \"a\"..\"z\"");
    if (why_) return {};
    const std::string end = read_quoted();
    if (why_) return {};
    if (utf8::count_code_points(text) != 1 || utf8::count_code_points(end) != 1) {
      refuse("a range is of single characters: \"a\"..\"z\"");
      return {};
    }
    const code_range range{utf8::decode(text, 0).value, utf8::decode(end, 0).value};
    if (range.first > range.last) refuse("a range ends before it begins");
    return {.what = part::kind::characters, .ranges = tidy({range}, false)};
  }
  std::string read_quoted() {
    std::string out;
    ++at_;
    while (!why_ && !is_over() && peek() != '"' && peek() != '\n') utf8::append(out, read_character());
    if (peek() != '"') refuse("a text does not end on its line");
    ++at_;
    return out;
  }
  char32_t read_character() {
    if (peek() != '\\') return read_plain();
    ++at_;
    if (peek() != 'f') return read_escaped(R"(\"')");
    ++at_;
    return '\f';
  }
  static part in_any_case(std::string_view text) {
    part out{.what = part::kind::sequence};
    for (const char c : text) {
      if (!is_letter(c)) {
        out.parts.push_back({.what = part::kind::literal, .text = std::string(1, c)});
        continue;
      }
      const char32_t lower = static_cast<unsigned char>(c) | 0x20U;
      out.parts.push_back(
          {.what = part::kind::characters, .ranges = tidy({{lower, lower}, {lower ^ 0x20U, lower ^ 0x20U}}, false)});
    }
    return out;
  }

  /// Reads /.../ with its flags.
  part read_expression() {
    ++at_;
    const std::size_t from = at_;
    while (!is_over() && peek() != '/' && peek() != '\n') at_ += peek() == '\\' ? 2 : 1;
    if (peek() != '/') {
      refuse("an expression does not end on its line");
      return {};
    }
    const auto pattern = text_.substr(from, at_ - from);
    ++at_;
    regex_dfa::options o;
    for (; std::string_view("imslux").find(peek()) != std::string_view::npos && !is_over(); ++at_) {
      // Without anchors, m changes nothing, and u is true of all texts.
      o.any_case = o.any_case || peek() == 'i';
      o.dot_is_any = o.dot_is_any || peek() == 's';
      if (peek() == 'l' || peek() == 'x') refuse(std::string("the flag '") + peek() + "' is not supported");
    }
    return expression_of(pattern, o);
  }
  part expression_of(std::string_view pattern, regex_dfa::options o) {
    if (!spend()) return {};
    if (utf8::valid_prefix_bytes(pattern) != pattern.size()) {
      refuse("expected UTF-8");
      return {};
    }
    o.may_anchor = false;
    o.states_max = std::min(regex_dfa::states_max, grammar_rules::states_max - states_);
    step_count own(std::min(regex_dfa::compile_steps_max, steps_.left()));
    auto made = regex_dfa::compile(pattern, o, own);
    steps_.add(own.taken());
    if (!made) {
      refuse("the expression /" + utf8::sanitize(pattern.substr(0, 64)) + "/: " + made.error().context);
      return {};
    }
    states_ += made->states_count();
    return {.what = part::kind::expression, .expression = std::make_shared<const regex_dfa>(std::move(*made))};
  }

  // ---- all together ----

  /// Terminals are expressions, which cannot be recursive.
  void refuse_recursive_terminals() {
    enum class mark : std::uint8_t { fresh, open, done };
    std::vector<mark> marks(rules_.size(), mark::fresh);
    struct frame {
      std::uint32_t rule;
      std::vector<std::uint32_t> calls;
    };
    for (const auto first : terminals_) {
      if (marks[first] != mark::fresh) continue;
      std::vector<frame> open;
      const auto enter = [&](std::uint32_t r) {
        marks[r] = mark::open;
        open.push_back({r, {}});
        add_calls(rules_[r].right, open.back().calls);
      };
      enter(first);
      while (!open.empty() && !why_) {
        if (open.back().calls.empty()) {
          marks[open.back().rule] = mark::done;
          open.pop_back();
          continue;
        }
        const auto called = open.back().calls.back();
        open.back().calls.pop_back();
        if (marks[called] == mark::open)
          return refuse("the terminal '" + rules_[called].name.substr(0, 64) + "' is made of itself: make it a rule",
                        rules_[called].line);
        if (marks[called] == mark::fresh) enter(called);
      }
    }
  }
  void add_calls(const part& p, std::vector<std::uint32_t>& out) {
    if (!spend()) return;
    if (p.what == part::kind::rule) out.push_back(p.rule);
    for (const auto& one : p.parts) add_calls(one, out);
  }

  void begin_with_ignored(grammar_rules& grammar) {
    part& right = grammar.rules[ignored_].right;
    if (ignores_.empty()) {
      for (auto& one : grammar.rules) drop_ignored(one.right);
      return;
    }
    right = repeated({.what = part::kind::choice, .parts = std::move(ignores_)}, 0, UINT32_MAX);
    rule all{.name = grammar.rules[grammar.root].name, .line = 0, .is_written = true};
    all.right.parts.push_back({.what = part::kind::rule, .rule = ignored_});
    all.right.parts.push_back({.what = part::kind::rule, .rule = grammar.root});
    grammar.root = static_cast<std::uint32_t>(grammar.rules.size());
    grammar.rules.push_back(std::move(all));
  }
  void drop_ignored(part& p) {
    std::erase_if(p.parts, [this](const part& one) { return one.what == part::kind::rule && one.rule == ignored_; });
    for (auto& one : p.parts) drop_ignored(one);
  }

  step_count& steps_;
  std::uint32_t ignored_;      // the rule for what may come between terminals
  std::vector<part> ignores_;  // its alternatives
  std::vector<std::uint32_t> terminals_;
  std::uint32_t states_ = 0;  // of all expressions
  bool in_terminal_ = false;  // what is being read is part of a terminal
};

}  // namespace

bool looks_like_lark(std::string_view text) {
  step_count uncounted;
  return lark_reader(text, uncounted).is_lark();
}

result<grammar_rules> read_lark(std::string_view text, step_count& steps) { return lark_reader(text, steps).read(); }

}  // namespace redline::grammar
