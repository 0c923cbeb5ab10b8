#include "runtime/jinja/parser.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/lexer.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

using tk = token::kind;

/// Limit of nested blocks, brackets and signs; each level costs about a dozen stack frames of this parser.
constexpr int nesting_max = 80;

struct binary_operator {
  std::string_view symbol;
  expression::kind type;
};

/// A recursive descent parser; one method per rule of Jinja's grammar, loosest binding first.
class parser {
 public:
  explicit parser(std::string_view source)
      : tokens_(tokenize(source)), program_(std::make_unique<template_program>()) {}

  std::unique_ptr<const template_program> run() {
    program_->body = parse_block({});
    return std::move(program_);
  }

 private:
  /// The special names that a macro's body mentions; one entry per enclosing macro.
  struct mentions {
    bool varargs = false, kwargs = false, caller = false;
  };

  class nested {
   public:
    explicit nested(parser& p) : p_(p) {
      if (++p_.nesting_ > nesting_max)
        p_.fail("expected at most " + std::to_string(nesting_max) + " levels of nesting");
    }
    ~nested() { --p_.nesting_; }
    nested(const nested&) = delete;
    nested& operator=(const nested&) = delete;

   private:
    parser& p_;
  };

  // -- tokens

  [[nodiscard]] const token& now() const { return tokens_[at_]; }
  [[nodiscard]] const token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void skip() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  [[nodiscard]] bool is_symbol(std::string_view s) const { return now().type == tk::symbol && now().text == s; }
  [[nodiscard]] bool is_name(std::string_view s) const { return now().type == tk::name && now().text == s; }
  bool take_symbol(std::string_view s) {
    if (!is_symbol(s)) return false;
    skip();
    return true;
  }
  bool take_name(std::string_view s) {
    if (!is_name(s)) return false;
    skip();
    return true;
  }

  [[noreturn]] void fail(std::string what) const { throw error{std::move(what), errc::invalid_template, now().line}; }
  [[noreturn]] void fail_wanted(std::string_view wanted) const {
    fail("expected " + std::string(wanted) + ", found " + describe(now()));
  }
  static std::string describe(const token& t) {
    switch (t.type) {
      case tk::data:
        return "text";
      case tk::block_begin:
        return "`{%`";
      case tk::block_end:
        return "`%}`";
      case tk::print_begin:
        return "`{{`";
      case tk::print_end:
        return "`}}`";
      case tk::string:
        return "a string";
      case tk::end:
        return "the end of the template";
      default:
        return "`" + t.text.substr(0, 40) + "`";
    }
  }
  void expect_symbol(std::string_view s) {
    if (!take_symbol(s)) fail_wanted("`" + std::string(s) + "`");
  }
  void expect_name(std::string_view s) {
    if (!take_name(s)) fail_wanted("`" + std::string(s) + "`");
  }
  std::string expect_any_name(std::string_view what) {
    if (now().type != tk::name) fail_wanted(what);
    std::string name = now().text;
    skip();
    return name;
  }
  void expect_block_end() {
    if (now().type != tk::block_end) fail_wanted("`%}`");
    skip();
  }

  // -- nodes

  expression& make(expression::kind type, std::initializer_list<expression_ref> operands = {}) {
    auto& node = *program_->expressions.emplace_back(std::make_unique<expression>());
    node.type = type;
    node.line = now().line;
    node.operands = operands;
    return node;
  }
  expression_ref make_constant(value v) {
    expression& node = make(expression::kind::constant);
    node.literal = std::move(v);
    return &node;
  }
  statement& make_statement(statement::kind type) {
    auto& node = *program_->statements.emplace_back(std::make_unique<statement>());
    node.type = type;
    node.line = now().line;
    return node;
  }
  std::uint32_t variable(const std::string& name) {
    const auto [found, is_new] =
        program_->name_index.try_emplace(name, static_cast<std::uint32_t>(program_->names.size()));
    if (is_new) program_->names.push_back(name);
    return found->second;
  }
  void mention(std::string_view name) {
    for (mentions& m : macros_) {
      m.varargs |= name == "varargs";
      m.kwargs |= name == "kwargs";
      m.caller |= name == "caller";
    }
  }

  // -- statements

  /// Parses up to a tag whose name is in `ends`, which stays current, or to the end of the template if there are none.
  statement_list parse_block(std::initializer_list<std::string_view> ends) {
    const nested level(*this);
    statement_list block;
    while (true) {
      switch (now().type) {
        case tk::end: {
          if (ends.size() == 0) return block;
          std::string wanted;
          for (const std::string_view end : ends)
            wanted += (wanted.empty() ? "`{% " : " or `{% ") + std::string(end) + " %}`";
          fail_wanted(wanted);
        }
        case tk::data: {
          statement& s = make_statement(statement::kind::data);
          s.text = now().text;
          block.push_back(&s);
          skip();
          break;
        }
        case tk::print_begin:
          block.push_back(&parse_print());
          break;
        case tk::block_begin:
          skip();
          if (now().type == tk::name && std::find(ends.begin(), ends.end(), now().text) != ends.end()) return block;
          block.push_back(&parse_statement());
          break;
        default:
          fail_wanted("text or a tag");
      }
    }
  }

  /// Parses a body after the head of a tag: closes the head, and reads up to one of `ends`.
  statement_list parse_body(std::initializer_list<std::string_view> ends) {
    take_symbol(":");
    expect_block_end();
    return parse_block(ends);
  }
  /// Parses a body and the tag that ends it.
  statement_list parse_whole_body(std::string_view end) {
    statement_list block = parse_body({end});
    skip();
    expect_block_end();
    return block;
  }
  /// Parses a body whose output is captured, so that break and continue cannot affect a loop outside.
  statement_list parse_captured_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    statement_list block = parse_whole_body(end);
    loops_ = loops;
    return block;
  }

  statement& parse_print() {
    statement& s = make_statement(statement::kind::print);
    skip();
    s.values = {parse_tuple_or_expression()};
    if (now().type != tk::print_end) fail_wanted("`}}`");
    skip();
    return s;
  }

  statement& parse_statement() {
    const std::string tag = now().type == tk::name ? now().text : "";
    if (tag == "for") return parse_for();
    if (tag == "if") return parse_if();
    if (tag == "set") return parse_set();
    if (tag == "macro") return parse_macro();
    if (tag == "call") return parse_call_block();
    if (tag == "filter") return parse_filter_block();
    if (tag == "with") return parse_with();
    if (tag == "generation") return parse_generation();
    if (tag == "break" || tag == "continue") return parse_loop_control();
    if (tag.empty()) fail_wanted("the name of a tag");
    if (tag.starts_with("end") || tag == "else" || tag == "elif")
      fail("found `{% " + tag + " %}` without its beginning");
    fail("tag `" + tag.substr(0, 40) + "` is not supported");
  }

  statement& parse_for() {
    statement& s = make_statement(statement::kind::loop);
    skip();
    s.targets = {parse_target_list("in")};
    expect_name("in");
    expression_ref items = parse_tuple_or_expression(false);
    expression_ref condition = take_name("if") ? parse_expression() : nullptr;
    s.values = {items, condition};
    if (is_name("recursive")) fail("`recursive` in `{% for %}` is not supported");
    ++loops_;
    s.bodies.push_back(parse_body({"endfor", "else"}));
    --loops_;
    if (take_name("else")) {
      s.bodies.push_back(parse_body({"endfor"}));
    } else {
      s.bodies.emplace_back();
    }
    skip();
    expect_block_end();
    return s;
  }

  statement& parse_if() {
    statement& s = make_statement(statement::kind::choose);
    do {
      skip();
      s.values.push_back(parse_tuple_or_expression(false));
      s.bodies.push_back(parse_body({"elif", "else", "endif"}));
    } while (is_name("elif"));
    if (take_name("else")) s.bodies.push_back(parse_body({"endif"}));
    skip();
    expect_block_end();
    return s;
  }

  statement& parse_set() {
    statement& s = make_statement(statement::kind::assign);
    skip();
    s.targets = {parse_set_target()};
    if (take_symbol("=")) {
      s.values = {parse_tuple_or_expression()};
      expect_block_end();
      return s;
    }
    s.type = statement::kind::assign_block;
    s.values = {is_symbol("|") ? parse_filters(nullptr) : nullptr};
    s.bodies = {parse_captured_body("endset")};
    return s;
  }

  statement& parse_macro() {
    statement& s = make_statement(statement::kind::macro);
    skip();
    s.signature.name = expect_any_name("the name of a macro");
    s.targets = {name_target(s.signature.name)};
    parse_parameters(s.signature);
    s.bodies = {parse_callable_body(s.signature, "endmacro")};
    return s;
  }

  statement& parse_call_block() {
    statement& s = make_statement(statement::kind::call_block);
    skip();
    s.signature.name = "caller";
    if (is_symbol("(")) parse_parameters(s.signature);
    expression_ref call = parse_expression();
    if (call->type != expression::kind::call) fail("expected a call of a macro in `{% call %}`");
    s.values = {call};
    s.bodies = {parse_callable_body(s.signature, "endcall")};
    return s;
  }

  statement_list parse_callable_body(macro_signature& signature, std::string_view end) {
    macros_.emplace_back();
    statement_list body = parse_captured_body(end);
    signature.uses_varargs = macros_.back().varargs;
    signature.uses_kwargs = macros_.back().kwargs;
    signature.uses_caller = macros_.back().caller;
    macros_.pop_back();
    return body;
  }

  void parse_parameters(macro_signature& signature) {
    expect_symbol("(");
    while (!is_symbol(")")) {
      if (!signature.parameters.empty()) expect_symbol(",");
      const std::string name = expect_any_name("the name of a parameter");
      macro_parameter parameter{name_target(name).variable, nullptr};
      for (const macro_parameter& other : signature.parameters) {
        if (other.variable == parameter.variable) fail("parameter `" + name + "` appears twice");
      }
      if (take_symbol("=")) {
        parameter.fallback = parse_expression();
      } else if (!signature.parameters.empty() && signature.parameters.back().fallback != nullptr) {
        fail("parameter `" + name + "` without a default follows one with a default");
      }
      signature.parameters.push_back(parameter);
    }
    skip();
  }

  statement& parse_filter_block() {
    statement& s = make_statement(statement::kind::filter_block);
    skip();
    s.values = {parse_filters(nullptr, true)};
    s.bodies = {parse_captured_body("endfilter")};
    return s;
  }

  statement& parse_with() {
    statement& s = make_statement(statement::kind::with_block);
    skip();
    while (now().type != tk::block_end) {
      if (!s.targets.empty()) expect_symbol(",");
      s.targets.push_back(parse_single_target());
      expect_symbol("=");
      s.values.push_back(parse_expression());
    }
    s.bodies = {parse_whole_body("endwith")};
    return s;
  }

  statement& parse_generation() {
    statement& s = make_statement(statement::kind::scope);
    skip();
    s.bodies = {parse_captured_body("endgeneration")};
    return s;
  }

  statement& parse_loop_control() {
    statement& s = make_statement(is_name("break") ? statement::kind::leave_loop : statement::kind::next_round);
    if (loops_ == 0) fail("found `{% " + now().text + " %}` outside a loop");
    skip();
    expect_block_end();
    return s;
  }

  // -- targets

  assignment_target name_target(const std::string& name) {
    static constexpr std::string_view constants[] = {"true", "false", "none", "True", "False", "None"};
    if (std::find(std::begin(constants), std::end(constants), name) != std::end(constants)) {
      fail("expected a name to assign to, found the constant `" + name + "`");
    }
    return {assignment_target::kind::name, variable(name), {}, {}};
  }

  assignment_target parse_set_target() {
    if (now().type == tk::name && ahead().type == tk::symbol && ahead().text == ".") {
      mention(now().text);
      assignment_target target{assignment_target::kind::attribute, variable(now().text), {}, {}};
      skip();
      skip();
      target.attribute = expect_any_name("the name of an attribute");
      return target;
    }
    return parse_target_list("");
  }

  /// Parses names separated by commas: one name, or a tuple. Stops before the name `end`.
  assignment_target parse_target_list(std::string_view end) {
    const nested level(*this);
    assignment_target first = parse_single_target();
    if (!is_symbol(",")) return first;
    assignment_target tuple{assignment_target::kind::tuple, 0, {}, {}};
    tuple.parts.push_back(std::move(first));
    while (take_symbol(",")) {
      if (is_symbol(")") || is_symbol("=") || (!end.empty() && is_name(end))) break;
      tuple.parts.push_back(parse_single_target());
    }
    return tuple;
  }

  assignment_target parse_single_target() {
    if (take_symbol("(")) {
      assignment_target inner = parse_target_list("");
      expect_symbol(")");
      return inner;
    }
    return name_target(expect_any_name("a name to assign to"));
  }

  // -- expressions

  /// Parses `a` or `a, b`, the most general rule. with_condition: whether `x if y else z` is allowed in it.
  expression_ref parse_tuple_or_expression(bool with_condition = true, bool empty_allowed = false) {
    std::vector<expression_ref> items;
    bool is_tuple = false;
    while (!(now().type == tk::print_end || now().type == tk::block_end || is_symbol(")"))) {
      items.push_back(with_condition ? parse_expression() : parse_or());
      if (!take_symbol(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && items.size() == 1) return items.front();
    if (items.empty() && !empty_allowed) fail_wanted("an expression");
    expression& node = make(expression::kind::tuple);
    node.operands = std::move(items);
    return &node;
  }

  expression_ref parse_expression() {
    const nested level(*this);
    expression_ref node = parse_or();
    while (take_name("if")) {
      expression_ref condition = parse_or();
      expression_ref otherwise = take_name("else") ? parse_expression() : nullptr;
      node = &make(expression::kind::conditional, {condition, node, otherwise});
    }
    return node;
  }

  expression_ref parse_or() {
    expression_ref left = parse_and();
    while (take_name("or")) {
      expression_ref right = parse_and();
      left = &make(expression::kind::logical_or, {left, right});
    }
    return left;
  }

  expression_ref parse_and() {
    expression_ref left = parse_not();
    while (take_name("and")) {
      expression_ref right = parse_not();
      left = &make(expression::kind::logical_and, {left, right});
    }
    return left;
  }

  expression_ref parse_not() {
    if (!take_name("not")) return parse_compare();
    const nested level(*this);
    expression_ref operand = parse_not();
    return &make(expression::kind::logical_not, {operand});
  }

  std::optional<expression::comparison> take_comparison() {
    using enum expression::comparison;
    static constexpr std::pair<std::string_view, expression::comparison> symbols[] = {
        {"==", equal}, {"!=", unequal}, {"<", less}, {"<=", less_equal}, {">", greater}, {">=", greater_equal}};
    for (const auto& [symbol, comparison] : symbols) {
      if (take_symbol(symbol)) return comparison;
    }
    if (take_name("in")) return in;
    if (is_name("not") && ahead().type == tk::name && ahead().text == "in") {
      skip();
      skip();
      return not_in;
    }
    return std::nullopt;
  }

  expression_ref parse_compare() {
    expression_ref first = parse_sum();
    expression* chain = nullptr;
    while (const auto comparison = take_comparison()) {
      if (chain == nullptr) chain = &make(expression::kind::compare, {first});
      chain->comparisons.push_back(*comparison);
      chain->operands.push_back(parse_sum());
    }
    return chain != nullptr ? chain : first;
  }

  expression_ref parse_sum() {
    expression_ref left = parse_concatenation();
    while (is_symbol("+") || is_symbol("-")) {
      const auto type = is_symbol("+") ? expression::kind::add : expression::kind::subtract;
      skip();
      expression_ref right = parse_concatenation();
      left = &make(type, {left, right});
    }
    return left;
  }

  expression_ref parse_concatenation() {
    expression_ref first = parse_product();
    if (!is_symbol("~")) return first;
    expression& node = make(expression::kind::concatenate, {first});
    while (take_symbol("~")) node.operands.push_back(parse_product());
    return &node;
  }

  expression_ref parse_product() {
    static constexpr binary_operator operators[] = {{"*", expression::kind::multiply},
                                                    {"/", expression::kind::divide},
                                                    {"//", expression::kind::floor_divide},
                                                    {"%", expression::kind::modulo}};
    expression_ref left = parse_power();
    while (true) {
      const auto found = std::find_if(std::begin(operators), std::end(operators),
                                      [&](const binary_operator& o) { return is_symbol(o.symbol); });
      if (found == std::end(operators)) return left;
      skip();
      expression_ref right = parse_power();
      left = &make(found->type, {left, right});
    }
  }

  expression_ref parse_power() {
    expression_ref left = parse_unary(true);
    while (take_symbol("**")) {
      expression_ref right = parse_unary(true);
      left = &make(expression::kind::power, {left, right});
    }
    return left;
  }

  expression_ref parse_unary(bool with_filters) {
    expression_ref node = nullptr;
    if (is_symbol("-") || is_symbol("+")) {
      const nested level(*this);
      const auto type = is_symbol("-") ? expression::kind::negate : expression::kind::plus;
      skip();
      expression_ref operand = parse_unary(false);
      node = &make(type, {operand});
    } else {
      node = parse_primary();
    }
    node = parse_postfix(node);
    return with_filters ? parse_filters_and_tests(node) : node;
  }

  expression_ref parse_primary() {
    const token& t = now();
    switch (t.type) {
      case tk::name:
        return parse_name();
      case tk::string: {
        std::string text;
        for (; now().type == tk::string; skip()) text += now().text;
        return make_constant(value::string(*program_->constants, std::move(text)));
      }
      case tk::integer:
        return parse_integer();
      case tk::real: {
        double number = 0;
        const std::string text = t.text;
        if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
          fail("expected a number that a double can represent, found `" + text.substr(0, 40) + "`");
        }
        skip();
        return make_constant(value::real(number));
      }
      default:
        break;
    }
    if (take_symbol("(")) {
      expression_ref inner = parse_tuple_or_expression(true, true);
      expect_symbol(")");
      return inner;
    }
    if (is_symbol("[")) return parse_list();
    if (is_symbol("{")) return parse_dict();
    fail_wanted("an expression");
  }

  expression_ref parse_name() {
    const std::string name = now().text;
    skip();
    if (name == "true" || name == "True") return make_constant(value::boolean(true));
    if (name == "false" || name == "False") return make_constant(value::boolean(false));
    if (name == "none" || name == "None") return make_constant({});
    mention(name);
    expression& node = make(expression::kind::name);
    node.variable = variable(name);
    return &node;
  }

  expression_ref parse_integer() {
    const std::string text = now().text;
    int base = 10;
    std::size_t from = 0;
    if (text.size() > 2 && text[0] == '0' && text[1] >= 'A') {
      base = (text[1] | 32) == 'x' ? 16 : (text[1] | 32) == 'o' ? 8 : 2;
      from = 2;
    }
    std::int64_t number = 0;
    if (std::from_chars(text.data() + from, text.data() + text.size(), number, base).ec != std::errc()) {
      fail("expected an integer of 64 bits, found `" + text.substr(0, 40) + "`");
    }
    skip();
    return make_constant(value::integer(number));
  }

  expression_ref parse_list() {
    skip();
    expression& node = make(expression::kind::list);
    while (!is_symbol("]")) {
      if (!node.operands.empty()) {
        expect_symbol(",");
        if (is_symbol("]")) break;
      }
      node.operands.push_back(parse_expression());
    }
    skip();
    return &node;
  }

  expression_ref parse_dict() {
    skip();
    expression& node = make(expression::kind::dict);
    while (!is_symbol("}")) {
      if (!node.operands.empty()) {
        expect_symbol(",");
        if (is_symbol("}")) break;
      }
      node.operands.push_back(parse_expression());
      expect_symbol(":");
      node.operands.push_back(parse_expression());
    }
    skip();
    return &node;
  }

  expression_ref parse_postfix(expression_ref node) {
    while (true) {
      if (is_symbol(".")) {
        node = parse_attribute(node);
      } else if (is_symbol("[")) {
        node = parse_subscript(node);
      } else if (is_symbol("(")) {
        node = parse_call(node);
      } else {
        return node;
      }
    }
  }

  expression_ref parse_attribute(expression_ref object) {
    skip();
    if (now().type == tk::integer) {
      expression_ref index = parse_integer();
      return &make(expression::kind::item, {object, index});
    }
    expression& node = make(expression::kind::attribute, {object});
    node.text = expect_any_name("the name of an attribute");
    return &node;
  }

  expression_ref parse_subscript(expression_ref object) {
    skip();
    expression_ref parts[3] = {nullptr, nullptr, nullptr};
    std::size_t colons = 0;
    while (!is_symbol("]")) {
      if (take_symbol(":")) {
        if (++colons > 2) fail("expected at most two `:` in a slice");
        continue;
      }
      if (is_symbol(",") || parts[colons] != nullptr) fail_wanted("`]`");
      parts[colons] = parse_expression();
    }
    skip();
    if (colons > 0) return &make(expression::kind::slice, {object, parts[0], parts[1], parts[2]});
    if (parts[0] == nullptr) fail("expected an expression between `[` and `]`");
    return &make(expression::kind::item, {object, parts[0]});
  }

  std::vector<argument_expression> parse_arguments() {
    using enum argument_expression::kind;
    expect_symbol("(");
    std::vector<argument_expression> arguments;
    bool only_named = false;
    while (!is_symbol(")")) {
      if (!arguments.empty()) {
        expect_symbol(",");
        if (is_symbol(")")) break;
      }
      argument_expression argument;
      if (take_symbol("*")) {
        argument.type = spread_list;
      } else if (take_symbol("**")) {
        argument.type = spread_dict;
      } else if (now().type == tk::name && ahead().type == tk::symbol && ahead().text == "=") {
        argument.type = keyword;
        argument.name = now().text;
        skip();
        skip();
      } else if (only_named) {
        fail("found a positional argument after named ones");
      }
      only_named |= argument.type != positional;
      argument.value = parse_expression();
      arguments.push_back(std::move(argument));
    }
    skip();
    return arguments;
  }

  expression_ref parse_call(expression_ref callee) {
    expression& node = make(expression::kind::call, {callee});
    node.arguments = parse_arguments();
    return &node;
  }

  expression_ref parse_filters_and_tests(expression_ref node) {
    while (true) {
      if (is_symbol("|")) {
        node = parse_filters(node);
      } else if (is_name("is")) {
        node = parse_test(node);
      } else if (is_symbol("(")) {
        node = parse_call(node);
      } else {
        return node;
      }
    }
  }

  std::string parse_dotted_name(std::string_view what) {
    std::string name = expect_any_name(what);
    while (take_symbol(".")) name += "." + expect_any_name(what);
    return name;
  }

  /// Parses `| f | g(x)` over `node`, which is null for the head of a filter block. started: without the first `|`.
  expression_ref parse_filters(expression_ref node, bool started = false) {
    while (started || take_symbol("|")) {
      started = false;
      expression& filter = make(expression::kind::filter, {node});
      filter.text = parse_dotted_name("the name of a filter");
      filter.native = find_filter(filter.text);
      if (is_symbol("(")) filter.arguments = parse_arguments();
      node = &filter;
    }
    return node;
  }

  expression_ref parse_test(expression_ref node) {
    skip();
    const bool negated = take_name("not");
    expression& test = make(expression::kind::test, {node});
    test.text = parse_dotted_name("the name of a test");
    test.native = find_test(test.text);
    const bool operand = now().type == tk::name || now().type == tk::string || now().type == tk::integer ||
                         now().type == tk::real || is_symbol("[") || is_symbol("{");
    if (is_symbol("(")) {
      test.arguments = parse_arguments();
    } else if (operand && !is_name("else") && !is_name("or") && !is_name("and")) {
      if (is_name("is")) fail("expected one test, found `is` after a test");
      argument_expression argument;
      argument.value = parse_postfix(parse_primary());
      test.arguments.push_back(argument);
    }
    if (!negated) return &test;
    return &make(expression::kind::logical_not, {&test});
  }

  std::vector<token> tokens_;
  std::size_t at_ = 0;
  std::unique_ptr<template_program> program_;
  std::vector<mentions> macros_;
  int nesting_ = 0;
  int loops_ = 0;
};

}  // namespace

std::unique_ptr<const template_program> parse_template(std::string_view source) { return parser(source).run(); }

}  // namespace redline::jinja
