#include "bench/studies/common/edit_request.hpp"

#include "actors/prompts/prompt_builder.hpp"

namespace redline::studies {

result<generation_spec> request_of(const edit_task& task, const draft::draft_options& how, const engine& e,
                                   const std::optional<copy_options>& copy) {
  REDLINE_TRY(check_editable(task));
  REDLINE_TRY_ASSIGN(const auto prompts, prompt_builder::make(e.tokenizer(), e.options().chat_template));
  const std::string message =
      copy ? program_message_of(task, {copy->line_spans, copy->token_spans, copy->anchors}) : message_of(task);
  generation_spec g;
  REDLINE_TRY_ASSIGN(g.prompt, prompts.message_with_file(message, real_environment().unix_seconds()));
  g.tokens_max = e.context_max();
  g.draft = how;
  if (copy) {
    if (!e.token_trie()) return failure{errc::unsupported_format, "the model's vocabulary cannot spell programs"};
    REDLINE_TRY_ASSIGN(g.rules, make_copy_rules(e.token_trie(), {shown_file(task)}, *copy));
  }
  if (draft::reads_prediction(how.how)) g.prediction = e.tokenizer()->encode(shown_file(task));
  return g;
}

}  // namespace redline::studies
