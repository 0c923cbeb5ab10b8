#include "runtime/grammar/constraint.hpp"

#include "runtime/base/utf8.hpp"
#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/syntax/part_builders.hpp"
#include "runtime/grammar/tool_grammar.hpp"

namespace redline::grammar {
namespace {

result<copy::program_shape> parse_shape(std::span<const std::uint32_t> numbers) {
  const auto wrong =
      failure{errc::malformed_message, "a copy grammar's shape is malformed; the peers may run different versions"};
  if (numbers.size() < 2 || numbers.size() % 2 != 0 || numbers[0] > 1 || numbers[1] > 3) return wrong;
  if (numbers.size() / 2 - 1 > copy::program_shape::files_max) return wrong;
  copy::program_shape shape{.files = {},
                            .line_spans = numbers[0] == 1,
                            .token_spans = (numbers[1] & 1) != 0,
                            .anchors = (numbers[1] & 2) != 0};
  for (std::size_t i = 2; i < numbers.size(); i += 2) shape.files.push_back({numbers[i], numbers[i + 1]});
  return shape;
}

result<void> check_text(std::string_view text, const std::string& what) {
  if (text.size() > grammar_bytes_max) {
    return failure{errc::invalid_argument, what + ": expected at most " + std::to_string(grammar_bytes_max) +
                                               " bytes, found " + std::to_string(text.size())};
  }
  if (utf8::valid_prefix_bytes(text) < text.size())
    return failure{errc::invalid_argument, what + ": expected text in UTF-8"};
  return {};
}

}  // namespace

constraint copy_constraint(const copy::program_shape& shape) {
  constraint c{.kind = grammar_kind::copy,
               .text = {},
               .shape = {shape.line_spans ? 1u : 0u, (shape.token_spans ? 1u : 0u) + (shape.anchors ? 2u : 0u)},
               .state = {}};
  for (const auto& f : shape.files) {
    c.shape.push_back(f.lines);
    c.shape.push_back(f.tokens);
  }
  return c;
}

constraint text_constraint(grammar_text text) {
  return {.kind = text.kind, .text = std::move(text.text), .shape = {}, .state = {}};
}

constraint without_text(constraint c) {
  return {.kind = grammar_kind::known, .text = {}, .shape = {}, .state = std::move(c.state)};
}

result<std::shared_ptr<const byte_automaton>> compile_automaton(const constraint& c) {
  switch (c.kind) {
    case grammar_kind::copy: {
      REDLINE_TRY_ASSIGN(auto shape, parse_shape(c.shape));
      return std::shared_ptr<const byte_automaton>(std::make_shared<copy_grammar>(std::move(shape)));
    }
    case grammar_kind::json:
      return compile_schema(c.text);
    case grammar_kind::regex: {
      REDLINE_TRY(check_text(c.text, "expression"));
      REDLINE_TRY_ASSIGN(auto texts, regex_dfa::compile(c.text, {}));
      step_count steps(rules_automaton::compile_steps_max);
      part whole = expression(std::make_shared<const regex_dfa>(std::move(texts)), false);
      grammar_rules rules{.rules = {{.name = "expression", .is_written = true, .right = std::move(whole)}},
                          .subject = "expression"};
      REDLINE_TRY_ASSIGN(auto made, rules_automaton::compile(std::move(rules), steps));
      return std::shared_ptr<const byte_automaton>(std::move(made));
    }
    case grammar_kind::rules: {
      REDLINE_TRY(check_text(c.text, "grammar"));
      REDLINE_TRY_ASSIGN(auto made, rules_automaton::compile(c.text));
      return std::shared_ptr<const byte_automaton>(std::move(made));
    }
    case grammar_kind::tools: {
      REDLINE_TRY_ASSIGN(auto tools, compile_tools(c.text));
      return std::shared_ptr<const byte_automaton>(std::move(tools));
    }
    case grammar_kind::none:
    case grammar_kind::known:
    case grammar_kind::last_:
      break;
  }
  return failure{errc::malformed_message, "unknown kind of grammar; expected copy, json, regex, rules or tools"};
}

}  // namespace redline::grammar
