#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages/answer_terms.hpp"
#include "actors/messages/session_messages.hpp"
#include "runtime/copy/program.hpp"
#include "runtime/draft/text_lookup.hpp"
#include "runtime/grammar/grammar_matcher.hpp"
#include "runtime/grammar/tool_automaton.hpp"

namespace redline::actors {

[[nodiscard]] std::string_view name_of(copy_trust t);
[[nodiscard]] std::string_view name_of(span_reason r);
[[nodiscard]] std::optional<copy_trust> parse_copy_trust(std::string_view name);

/// What an answer has to follow; shared by the answers of one request.
struct output_rules {
  std::shared_ptr<const grammar::compiled_grammar> grammar;
  grammar::constraint constraint;                        // the same grammar, as sent to the target model
  std::shared_ptr<const grammar::tool_automaton> tools;  // for answers that may call tools; else null
  std::vector<token> shown;                              // the control tokens that are part of their text; ascending
  std::shared_ptr<const draft::text_lookup> known;       // what their arguments may repeat; may be null
  copy_options copy;                                     // for edit programs only, like all below
  copy::program_shape shape;
  std::vector<copy::document> files;
  std::vector<std::vector<token>> file_tokens;  // with token_spans

  [[nodiscard]] bool is_program() const { return constraint.kind == grammar::grammar_kind::copy; }
};

inline constexpr std::size_t copy_file_bytes_max = 4 << 20;

/// Edit programs over these files. Fails for too many or too large files, and for bytes that the vocabulary lacks.
result<std::shared_ptr<const output_rules>> make_copy_rules(std::shared_ptr<const grammar::token_trie> trie,
                                                            const std::vector<std::string>& files,
                                                            const copy_options& options);
/// Values of a JSON schema, or texts of a regular expression or of rules. Fails if they cannot become a grammar.
/// automata: where they are compiled, if they are not known there.
result<std::shared_ptr<const output_rules>> make_text_rules(
    std::shared_ptr<const grammar::token_trie> trie, grammar::grammar_text text,
    const std::shared_ptr<grammar::automaton_store>& automata = std::make_shared<grammar::automaton_store>());

/// Text that may call tools. tools: the text of a grammar::tool_constraint.
result<std::shared_ptr<const output_rules>> make_tool_rules(
    std::shared_ptr<const grammar::token_trie> trie, const std::string& tools,
    const std::shared_ptr<grammar::automaton_store>& automata = std::make_shared<grammar::automaton_store>());

}  // namespace redline::actors
