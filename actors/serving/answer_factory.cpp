#include "actors/serving/answer_factory.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace redline::actors {

namespace {

/// It keeps a token out of an answer as long as any other may come.
constexpr float suppression = -1e30F;

}  // namespace

answer_factory::answer_factory(parts from) : parts_(std::move(from)) {
  for (token t = 0; t < static_cast<token>(parts_.tokenizer->size()); ++t) {
    if (parts_.tokenizer->is_end_of_generation(t)) end_tokens_.push_back(t);
    longest_piece_bytes_ = std::max(longest_piece_bytes_, parts_.tokenizer->piece(t, true).size());
  }
  // Whitespace that is in no token may have any length.
  if (!parts_.tokenizer->covers_every_byte()) longest_piece_bytes_ = std::numeric_limits<std::size_t>::max();
}

std::optional<refusal> answer_factory::check_length(std::size_t bytes, const std::string& field) const {
  const std::size_t least = tokens_min(bytes);
  const std::uint32_t most = context_max();
  if (least < most) return std::nullopt;
  return refusal{.field = field,
                 .why = {errc::context_length_exceeded, context_sentence(most) + " However, '" + field + "' has " +
                                                            std::to_string(bytes) + " bytes, which are at least " +
                                                            std::to_string(least) + " tokens: send less."}};
}

outcome<std::shared_ptr<const output_rules>, refusal> answer_factory::rules_for(const answer_terms& terms) const {
  if (!terms.copy && !terms.format && !terms.tools) return std::shared_ptr<const output_rules>{};
  const std::string field = terms.copy ? "redline.copy" : terms.format ? "response_format" : "tools";
  if (!parts_.token_trie) {
    return refusal{.field = field,
                   .why = {errc::invalid_argument, "This model's vocabulary lacks tokens that '" + field + "' needs."}};
  }
  auto rules = terms.format  ? make_text_rules(parts_.token_trie, *terms.format, parts_.automata)
               : terms.tools ? make_tool_rules(parts_.token_trie, *terms.tools, parts_.automata)
                             : make_copy_rules(parts_.token_trie, terms.copy->files, terms.copy->options);
  if (rules) return std::move(*rules);
  if (terms.format) {
    const bool is_grammar = terms.format->kind == grammar::grammar_kind::rules;
    return refusal{refusal::kind::bad_grammar, is_grammar ? "grammar" : "response_format.json_schema.schema",
                   rules.error()};
  }
  if (terms.tools) return refusal{refusal::kind::bad_grammar, "tools", rules.error()};
  return refusal{.field = "redline.files", .why = {errc::invalid_argument, rules.error().context}};
}

outcome<session_partners, refusal> answer_factory::partners_for(draft::method how, actor::address client) const {
  auto partners = parts_.partners_for(how, client);
  if (partners) return std::move(*partners);
  return refusal{.field = "redline.speculation.method", .why = partners.error()};
}

outcome<token_log, refusal> answer_factory::make(const answer_terms& terms, std::vector<token> prompt,
                                                 std::shared_ptr<const output_rules> rules,
                                                 std::optional<std::vector<token_range>> turns,
                                                 const std::string& prompt_field) const {
  generation_spec g{terms, std::move(prompt), context_max(), std::move(turns), std::move(rules)};
  // The rules contain them, compiled.
  g.copy.reset();
  g.format.reset();
  g.tools.reset();
  if (terms.tokens_min > 0) {
    g.sampling.banned_early = end_tokens_;
    g.sampling.banned_early.insert(g.sampling.banned_early.end(), terms.stop_tokens.begin(), terms.stop_tokens.end());
    g.sampling.banned_before = static_cast<std::uint32_t>(g.prompt.size()) + terms.tokens_min;
  }
  for (const token t : parts_.tokenizer->vocab().suppressed()) g.sampling.logit_bias.emplace_back(t, suppression);
  if (auto unknown = find_unknown_token(g, *parts_.tokenizer))
    return refusal{.field = std::move(unknown->field), .why = std::move(unknown->why)};
  if (parts_.on_answer) {
    if (const auto known = parts_.on_answer(g.session, g.prompt, g.rules.get()); !known)
      return refusal{.field = prompt_field, .why = known.error()};
  }
  auto work = token_log::make(std::move(g), parts_.tokenizer);
  if (work) return std::move(*work);
  return refusal{.field = prompt_field, .why = work.error()};
}

outcome<answer_factory::answer, refusal> answer_factory::prepare(const answer_terms& terms, std::vector<token> prompt,
                                                                 std::shared_ptr<const output_rules> rules,
                                                                 std::optional<std::vector<token_range>> turns,
                                                                 const std::string& prompt_field,
                                                                 actor::address client) const {
  auto partners = partners_for(terms.draft.how, client);
  if (!partners) return partners.error();
  auto work = make(terms, std::move(prompt), std::move(rules), std::move(turns), prompt_field);
  if (!work) return work.error();
  return answer{std::move(*work), std::move(*partners)};
}

}  // namespace redline::actors
