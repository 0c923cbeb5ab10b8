#include "runtime/model/acceptance.hpp"

#include "runtime/base/assert.hpp"

namespace redline::model {

acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before,
                  std::optional<std::uint32_t> logprobs_count, std::span<const token> known, row_filter* filter) {
  REDLINE_ASSERT(!logits.empty() && logits.size() == (draft.size() + 1) * vocabulary,
                 "one row of logits per draft token and one more");
  REDLINE_ASSERT(known.empty() || known.size() == draft.size() + 1, "one known token per row");
  acceptance out;
  row_sampler sampler(params, before);
  for (std::size_t row = 0;; ++row) {
    const auto here = logits.subspan(row * vocabulary, vocabulary);
    token chosen =
        sampler.choose(here, filter != nullptr ? filter->next_token_mask() : std::span<const std::uint64_t>{});
    if (!known.empty()) chosen = known[row];
    out.tokens.push_back(chosen);
    if (logprobs_count) out.logprobs.push_back(logprob_of(here, chosen, *logprobs_count));
    const bool continues = filter == nullptr || filter->accept_token(chosen);
    if (row == draft.size() || chosen != draft[row] || !continues) break;
    sampler.emit(chosen);
    ++out.accepted_count;
  }
  return out;
}

}  // namespace redline::model
