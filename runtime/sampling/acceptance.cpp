#include "runtime/sampling/acceptance.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::model {

acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before,
                  std::optional<std::uint32_t> logprobs_count, row_filter* filter, const chooser_of_answer& chooser) {
  REDLINE_ASSERT(!logits.empty() && logits.size() == (draft.size() + 1) * vocabulary,
                 "one row of logits per draft token and one more");
  acceptance out;
  row_sampler sampler(params, before);
  for (std::size_t row = 0;; ++row) {
    const auto here = logits.subspan(row * vocabulary, vocabulary);
    if (!is_usable(here)) return {.is_usable = false, .tokens = {}, .logprobs = {}};
    token chosen =
        sampler.choose(here, filter != nullptr ? filter->next_token_mask() : std::span<const std::uint64_t>{});
    if (chooser.chooser != nullptr) {
      const auto drafted = row < draft.size() ? std::optional(draft[row]) : std::nullopt;
      const auto answered = before.count - std::min<std::uint64_t>(before.count, before.prompt_count);
      chosen = chooser.chooser->choose({chooser.answer, answered + row, drafted}).value_or(chosen);
    }
    out.tokens.push_back(chosen);
    if (logprobs_count) out.logprobs.push_back(logprob_of(here, chosen, *logprobs_count));
    const bool continues = filter == nullptr || filter->accept_token(chosen);
    if (row == draft.size() || chosen != draft[row] || !continues) break;
    sampler.emit(chosen);
    ++out.accepted_count;
  }
  return out;
}

acceptance score(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                 std::uint32_t logprobs_count) {
  REDLINE_ASSERT(!logits.empty() && logits.size() == (draft.size() + 1) * vocabulary,
                 "one row of logits per draft token and one more");
  acceptance out;
  for (std::size_t row = 0; row <= draft.size(); ++row) {
    const auto here = logits.subspan(row * vocabulary, vocabulary);
    if (!is_usable(here)) return {.is_usable = false, .tokens = {}, .logprobs = {}};
    const sampling_params greedy{};
    out.tokens.push_back(row < draft.size() ? draft[row] : row_sampler(greedy, {}).choose(here));
    out.logprobs.push_back(logprob_of(here, out.tokens.back(), logprobs_count));
  }
  out.accepted_count = static_cast<std::uint32_t>(draft.size());
  return out;
}

}  // namespace redline::model
