#include "runtime/sampling/acceptance.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/base/assert.hpp"

namespace redline::sampling {
namespace {
constexpr std::span<const std::uint64_t> no_mask;
}

draft_verification::draft_verification(std::span<const token> draft, const sampling_params& params,
                                       const token_context& before, const verification_options& how)
    : draft_(draft), params_(params), before_(before), how_(how), sampler_(params, before) {}

bool draft_verification::needs_only_best() const {
  return !how_.logprobs_count && how_.filter == nullptr && params_.leaves_logits_alone() && !(params_.temperature > 0);
}

/// The next row's token, by its logits and the filter.
token draft_verification::choose(const judged_row& r) {
  if (how_.filter == nullptr) return sampler_.choose(r.logits, no_mask, r.best);
  const auto least = how_.filter->copied_min();
  const auto copied = next_ < draft_.size() ? std::optional(draft_[next_]) : how_.after_draft;
  if (least && copied) return choose_in_copy(r, *copied, *least);
  return sampler_.choose(r.logits, how_.filter->next_token_mask(), r.best);
}

/// The copied token, unless the model would write another one instead.
token draft_verification::choose_in_copy(const judged_row& r, token copied, float least) {
  auto mask = how_.filter->next_token_mask();
  if (!allows(mask, copied)) {
    const std::size_t at = static_cast<std::size_t>(copied) / 64;
    with_copied_.assign(mask.begin(), mask.end());
    with_copied_.resize(std::max(with_copied_.size(), at + 1));
    with_copied_[at] |= std::uint64_t{1} << copied % 64;
    mask = with_copied_;
  }
  const token chosen = sampler_.choose(r.logits, mask, r.best);
  const bool is_kept = chosen == copied || (least < 1 && has_probability(r.logits, copied, least, mask));
  return is_kept ? copied : chosen;
}

void draft_verification::judge(const judged_row& r) {
  REDLINE_ASSERT(!is_done_, "a verification ends with the first refusal");
  if (!std::isfinite(r.best.value)) {
    out_ = {.is_usable = false, .tokens = {}, .logprobs = {}};
    is_done_ = true;
    return;
  }
  const auto drafted = next_ < draft_.size() ? std::optional(draft_[next_]) : std::nullopt;
  token id = r.best.id;
  if (how_.scores) {
    id = drafted.value_or(id);
  } else {
    id = choose(r);
  }
  if (how_.chooser.chooser != nullptr && !how_.scores) {
    const auto answered = before_.count - std::min<std::uint64_t>(before_.count, before_.prompt_count);
    id = how_.chooser.chooser->choose({how_.chooser.answer, answered + next_, drafted}).value_or(id);
  }
  out_.tokens.push_back(id);
  if (how_.logprobs_count) out_.logprobs.push_back(logprob_of(r.logits, id, *how_.logprobs_count));
  const bool continues = how_.filter == nullptr || how_.filter->accept_token(id);
  ++next_;
  is_done_ = id != drafted || !continues;
  if (is_done_) return;
  sampler_.emit(id);
  ++out_.accepted_count;
}

namespace {

acceptance judge_all(draft_verification v, std::span<const float> logits, std::size_t vocabulary) {
  REDLINE_ASSERT(!logits.empty() && logits.size() == v.rows_left() * vocabulary,
                 "one row of logits per draft token and one more");
  while (!v.is_done()) {
    const auto row = logits.subspan(v.next_row() * vocabulary, vocabulary);
    v.judge({row, best_of(row)});
  }
  return v.take();
}

}  // namespace

acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before, const verification_options& how) {
  return judge_all({draft, params, before, how}, logits, vocabulary);
}

acceptance score(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                 std::uint32_t logprobs_count) {
  const sampling_params greedy{};
  return judge_all({draft, greedy, {}, {.logprobs_count = logprobs_count, .scores = true}}, logits, vocabulary);
}

}  // namespace redline::sampling
