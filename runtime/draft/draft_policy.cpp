#include "runtime/draft/draft_policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace redline::draft {
namespace {

/// Sums keep this much at each new value: about the last ten count.
constexpr double kept_per_value = 0.9;
/// Drafts of the model differ much in what they save: about the last twenty count.
constexpr double kept_per_draft = 0.95;
/// Nothing is learned of the model in rounds without it, so its record goes back to the first one: it is tried again.
constexpr double kept_per_untried_round = 1 - 1.0 / 1024;
/// Of what a tenant's answers showed of savings.
constexpr double kept_per_answer = 0.95;

/// The mean of what is right of a draft of `room` tokens at most, if it is `mean` of a longer one, and as likely to end
/// at one token as at another.
double within(double mean, double room) { return mean <= 0 ? mean : mean * (1 - std::pow(mean / (mean + 1), room)); }

}  // namespace

/// Of a model that was not tried: as if so many drafts had been seen, each with so many tokens after the end of the
/// copy that is ready, so many rows more than it, so many passes, and so many rounds saved.
constexpr double first_drafts = 2;
constexpr double first_tokens = 5;
constexpr double first_rows = 8;
constexpr double first_passes = 2;
constexpr double first_rounds = 3;

round_value best_round(std::span<const draft_part> draft, const round_prices& prices) {
  round_value best;
  double rate = best.tokens / best.us(prices);
  double tokens = 1;
  double rows = 0;
  double chance = 1;
  for (const draft_part& part : draft) {
    for (std::uint32_t i = 0; i < part.count; ++i) {
      chance *= part.chance();
      const round_value wider{tokens += chance, rows += 1};
      if (wider.tokens < rate * wider.us(prices)) continue;
      best = wider;
      rate = wider.tokens / wider.us(prices);
    }
  }
  return best;
}

void disagreement_record::learn(std::span<const token> predicted, std::span<const token> looked_up,
                                std::span<const token> came) {
  const auto [p, l] = std::mismatch(predicted.begin(), predicted.end(), looked_up.begin(), looked_up.end());
  const auto agreed = static_cast<std::size_t>(p - predicted.begin());
  if (p == predicted.end() || l == looked_up.end() || agreed >= came.size()) return;
  if (!std::equal(came.begin(), came.begin() + static_cast<std::ptrdiff_t>(agreed), predicted.begin())) return;
  predicted_right_ *= kept_per_value;
  looked_up_right_ *= kept_per_value;
  if (came[agreed] == *p) predicted_right_ += 1;
  if (came[agreed] == *l) looked_up_right_ += 1;
}

draft_policy::draft_policy() {
  for (model_record& m : model_) m.first = first_drafts;
}

draft_policy::draft_policy(std::shared_ptr<draft_policy> tenant) : draft_policy() {
  tenant_ = std::move(tenant);
  if (!tenant_) return;
  tenant_->saved_us_ *= kept_per_answer;
  tenant_->tokens_ *= kept_per_answer;
  model_ = tenant_->model_;
  saved_us_ = tenant_->saved_us_;
  tokens_ = tenant_->tokens_;
}

double draft_policy::models_round::saved_us(const round_prices& prices) const {
  return (ready_rounds - 1) * prices.round_us + (ready_rows - rows) * prices.row_us - passes * prices.model_pass_us;
}

draft_policy::models_round operator+(const draft_policy::models_round& a, const draft_policy::models_round& b) {
  return {.extra_tokens = a.extra_tokens + b.extra_tokens,
          .rows = a.rows + b.rows,
          .passes = a.passes + b.passes,
          .ready_rounds = a.ready_rounds + b.ready_rounds,
          .ready_rows = a.ready_rows + b.ready_rows};
}
draft_policy::models_round operator*(double k, const draft_policy::models_round& r) {
  return {.extra_tokens = k * r.extra_tokens,
          .rows = k * r.rows,
          .passes = k * r.passes,
          .ready_rounds = k * r.ready_rounds,
          .ready_rows = k * r.ready_rows};
}

draft_policy::models_round draft_policy::first_round(const round_value& ready) {
  return {.extra_tokens = first_tokens,
          .rows = ready.rows + first_rows,
          .passes = first_passes,
          .ready_rounds = 1 + first_rounds,
          .ready_rows = ready.rows + first_rounds};
}

void draft_policy::model_record::forget(double kept) {
  drafts *= kept;
  sums = kept * sums;
  first = kept * first + (1 - kept) * first_drafts;
}

bool draft_policy::chooses_model(const place& here, const round_prices& prices) {
  const model_record& m = model_[here.grade];
  const models_round mean = 1 / (m.drafts + m.first) * (m.sums + m.first * first_round(here.ready));
  const double room = std::max(1 + here.tokens_max - here.ready.tokens, 0.0);
  const double extra = within(mean.extra_tokens, room);
  // A draft that is cut short saves less, but for its passes.
  models_round expected = mean;
  if (extra < mean.extra_tokens) {
    expected = extra / mean.extra_tokens * mean;
    expected.ready_rounds += 1 - extra / mean.extra_tokens;
    expected.passes = mean.passes;
  }
  const double saved = expected.saved_us(prices);
  const double n = std::max(here.ready.tokens + extra, 1.0);

  const double usual_per_token = (saved_us_ + std::max(saved, 0.0)) / (tokens_ + n);
  const double credit = saved + std::max(lost_us_, usual_per_token * here.tokens_to_come);
  saved_per_token_ = saved > 0 ? saved / n : -prices.model_row_us;
  lost_per_token_ = saved / n;

  model_[here.grade].forget(kept_per_untried_round);
  if (tenant_) tenant_->model_[here.grade].forget(kept_per_untried_round);
  return saved > 0 && credit >= here.unread * prices.model_row_us;
}

void draft_policy::learn_model(std::uint8_t grade, const models_round& came, const round_prices& prices) {
  if (tenant_) tenant_->learn_model(grade, came, prices);
  model_record& m = model_[grade];
  m.drafts = kept_per_draft * m.drafts + 1;
  m.sums = kept_per_draft * m.sums + came;
  m.first *= kept_per_value;
  lost_us_ = 0;
  model_drafted_ = true;
  saved_us_ += came.saved_us(prices);
}

void draft_policy::learn_round(double tokens) {
  const bool by_model = std::exchange(model_drafted_, false);
  if (!by_model) lost_us_ = std::max(0.0, lost_us_ + lost_per_token_ * tokens);
  for (draft_policy* each : {this, tenant_.get()}) {
    if (each == nullptr) continue;
    if (!by_model) each->saved_us_ += saved_per_token_ * tokens;
    each->tokens_ += tokens;
  }
}

}  // namespace redline::draft
