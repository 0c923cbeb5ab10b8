#include "actors/serving/output_rules.hpp"

#include <utility>

#include "runtime/grammar/copy_grammar.hpp"
#include "runtime/grammar/tool_grammar.hpp"

namespace redline::actors {
namespace {

constexpr std::pair<std::string_view, copy_trust> trusts[] = {
    {"forced", copy_trust::forced}, {"verified", copy_trust::verified}, {"auto", copy_trust::automatic}};

}  // namespace

std::string_view name_of(copy_trust t) {
  for (const auto& [name, trust] : trusts) {
    if (trust == t) return name;
  }
  return "?";
}

std::string_view name_of(span_reason r) {
  switch (r) {
    case span_reason::option:
      return "option";
    case span_reason::anchors:
      return "anchors";
    case span_reason::confidence:
      return "confidence";
    case span_reason::doubt:
      return "doubt";
    case span_reason::last_:
      break;
  }
  return "?";
}

std::optional<copy_trust> parse_copy_trust(std::string_view name) {
  for (const auto& [known, trust] : trusts) {
    if (known == name) return trust;
  }
  return std::nullopt;
}

result<std::shared_ptr<const output_rules>> make_copy_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                            const std::vector<std::string>& files,
                                                            const copy_options& options) {
  auto rules = std::make_shared<output_rules>();
  rules->copy = options;
  if (files.empty() || files.size() > copy::program_shape::files_max) {
    return failure{errc::invalid_argument, "expected 1 to " + std::to_string(copy::program_shape::files_max) +
                                               " files to copy from, found " + std::to_string(files.size())};
  }
  for (const auto& bytes : files) {
    if (bytes.size() > copy_file_bytes_max) {
      return failure{errc::invalid_argument, "expected files of at most " + std::to_string(copy_file_bytes_max) +
                                                 " bytes to copy from, found " + std::to_string(bytes.size())};
    }
    if (!trie->can_tokenize(bytes)) {
      return failure{errc::unsupported_format,
                     "a file to copy from contains bytes for which the model's vocabulary has no token"};
    }
    if (!options.token_spans) {
      rules->files.emplace_back(bytes);
      continue;
    }
    rules->file_tokens.push_back(trie->spell(bytes));
    std::vector<std::uint32_t> ends;
    std::uint32_t end = 0;
    for (const token t : rules->file_tokens.back())
      ends.push_back(end += static_cast<std::uint32_t>(trie->tokenizer().piece(t).size()));
    rules->files.emplace_back(bytes, std::move(ends));
  }
  rules->shape = copy::shape_of(rules->files, options.token_spans);
  rules->shape.line_spans = options.line_spans;
  rules->shape.anchors = options.anchors;
  rules->constraint = grammar::copy_constraint(rules->shape);
  if (options.trust == copy_trust::automatic) rules->constraint.copied_min = options.probability_min;
  rules->grammar = std::make_shared<grammar::compiled_grammar>(std::make_shared<grammar::copy_grammar>(rules->shape),
                                                               std::move(trie));
  return std::shared_ptr<const output_rules>(std::move(rules));
}

result<std::shared_ptr<const output_rules>> make_text_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                            grammar::grammar_text text,
                                                            const std::shared_ptr<grammar::automaton_store>& automata) {
  auto rules = std::make_shared<output_rules>();
  rules->constraint = grammar::text_constraint(std::move(text));
  REDLINE_TRY_ASSIGN(auto automaton, automata->get(rules->constraint));
  rules->grammar = std::make_shared<grammar::compiled_grammar>(std::move(automaton), std::move(trie));
  return std::shared_ptr<const output_rules>(std::move(rules));
}

result<std::shared_ptr<const output_rules>> make_tool_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                            const std::string& tools,
                                                            const std::shared_ptr<grammar::automaton_store>& automata) {
  auto rules = std::make_shared<output_rules>();
  rules->constraint = {.kind = grammar::grammar_kind::tools, .text = tools, .shape = {}, .state = {}};
  REDLINE_TRY_ASSIGN(const auto known, automata->get(rules->constraint));
  auto automaton = std::static_pointer_cast<const grammar::tool_automaton>(known);
  const auto& tokenizer = trie->tokenizer();
  for (token t = 0; t < static_cast<token>(tokenizer.size()); ++t) {
    if (tokenizer.piece(t).empty() && tools::shows_control(automaton->format(), tokenizer.piece(t, true)))
      rules->shown.push_back(t);
  }
  rules->tools = automaton;
  rules->grammar = std::make_shared<grammar::compiled_grammar>(std::move(automaton), std::move(trie));
  return std::shared_ptr<const output_rules>(std::move(rules));
}

}  // namespace redline::actors
