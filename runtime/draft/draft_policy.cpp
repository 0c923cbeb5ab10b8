#include "runtime/draft/draft_policy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace redline::draft {
namespace {

/// Sums keep this much at each new value: about the last ten count.
constexpr double kept_per_value = 0.9;
/// Nothing is learned of the model in rounds without it, so its record goes back to the first one: it is tried again.
constexpr double kept_per_untried_round = 1 - 1.0 / 1024;
/// Of what a tenant's answers showed of savings.
constexpr double kept_per_answer = 0.95;

/// The mean of what is right of a draft of `room` tokens at most, if it is `mean` of a longer one, and as likely to end
/// at one token as at another.
double within(double mean, double room) { return mean <= 0 ? mean : mean * (1 - std::pow(mean / (mean + 1), room)); }

}  // namespace

/// As if so many drafts had been seen: a model that pays.
const draft_policy::model_record draft_policy::first_model{
    .drafts = 2, .extra_tokens = 10, .extra_rows = 16, .passes = 4};

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

draft_policy::draft_policy() { model_.fill(first_model); }

draft_policy::draft_policy(std::shared_ptr<draft_policy> tenant) : draft_policy() {
  tenant_ = std::move(tenant);
  if (!tenant_) return;
  tenant_->saved_us_ *= kept_per_answer;
  tenant_->tokens_ *= kept_per_answer;
  model_ = tenant_->model_;
  ready_ = tenant_->ready_;
  saved_us_ = tenant_->saved_us_;
  tokens_ = tenant_->tokens_;
}

void draft_policy::model_record::age(double kept, const model_record& towards) {
  const auto mix = [&](double& sum, double other) { sum = kept * sum + (1 - kept) * other; };
  mix(drafts, towards.drafts);
  mix(extra_tokens, towards.extra_tokens);
  mix(extra_rows, towards.extra_rows);
  mix(passes, towards.passes);
}

bool draft_policy::chooses_model(const place& here, const round_prices& prices) {
  const model_record& m = model_[here.grade];
  const path& r = ready_[here.grade];
  const double room = std::max(1 + here.tokens_max - here.ready.tokens, 0.0);
  const double n = std::max(here.ready.tokens + within(m.extra_tokens / m.drafts, room), 1.0);
  const double model_us = std::max(prices.round_us, here.ready.us(prices) + m.extra_rows / m.drafts * prices.row_us) +
                          m.passes / m.drafts * prices.model_pass_us;
  // This round counts as one of those that are known.
  const double ready_us = r.rounds * prices.round_us + r.rows * prices.row_us + here.ready.us(prices);
  const double us_per_token = ready_us / (r.tokens + here.ready.tokens);
  const double saved = n * us_per_token - model_us;

  const double usual_per_token = (saved_us_ + std::max(saved, 0.0)) / (tokens_ + n);
  const double to_come = here.has_read ? here.unread : here.tokens_to_come;
  const double credit = saved + std::max(lost_us_, usual_per_token * to_come);
  saved_per_token_ = saved / n;

  model_[here.grade].age(kept_per_untried_round, first_model);
  if (tenant_) tenant_->model_[here.grade].age(kept_per_untried_round, first_model);
  // A round that nothing came of is asked for again.
  if (!open_.empty() && open_.back().so_far.tokens == 0) open_.pop_back();
  open_.push_back({.grade = here.grade, .to_come = n, .so_far = {}});
  return saved > 0 && credit >= here.unread * prices.model_row_us;
}

void draft_policy::learn_model(std::uint8_t grade, double extra_tokens, double extra_rows, double passes) {
  if (tenant_) tenant_->learn_model(grade, extra_tokens, extra_rows, passes);
  model_record& m = model_[grade];
  m.age(kept_per_value, {});
  m.drafts += 1;
  m.extra_tokens += extra_tokens;
  m.extra_rows += extra_rows;
  m.passes += passes;
  lost_us_ = 0;
  model_drafted_ = true;
}

void draft_policy::age(path& p) {
  p.tokens *= kept_per_value;
  p.rounds *= kept_per_value;
  p.rows *= kept_per_value;
}

void draft_policy::learn_ready(const path& came) {
  if (came.tokens <= 0) return;
  if (!std::exchange(model_drafted_, false)) lost_us_ = std::max(0.0, lost_us_ + saved_per_token_ * came.tokens);
  for (draft_policy* each : {this, tenant_.get()}) {
    if (each == nullptr) continue;
    each->saved_us_ += std::max(saved_per_token_, 0.0) * came.tokens;
    each->tokens_ += came.tokens;
  }
  std::erase_if(open_, [&](open_path& o) {
    const double left = o.to_come - o.so_far.tokens;
    const double share = std::min(1.0, left / came.tokens);  // a path that ends within what came has its share of it
    o.so_far.tokens += share * came.tokens;
    o.so_far.rounds += share * came.rounds;
    o.so_far.rows += share * came.rows;
    if (left > came.tokens) return false;
    for (draft_policy* each : {this, tenant_.get()}) {
      if (each == nullptr) continue;
      path& r = each->ready_[o.grade];
      age(r);
      r.tokens += o.so_far.tokens;
      r.rounds += o.so_far.rounds;
      r.rows += o.so_far.rows;
    }
    return true;
  });
}

}  // namespace redline::draft
