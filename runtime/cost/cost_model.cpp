#include "runtime/cost/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/cost/learning.hpp"

namespace redline::cost {
namespace {

// The error that whole microseconds add to a pass's time, so that passes that take no time (a stopped clock) do not
// make the model certain.
constexpr double resolution_us = 1;
// Before the first observation: how far laws may be from zero and bends from the line, in units of the first pass.
constexpr double law_spread = 100;
constexpr double bend_spread = 0.25;
// A pass that took this many times longer than predicted was disturbed by something else and must not be learned. After
// this many such passes in a row, the machine has become that much slower. Nothing speeds a pass up, so a smaller ratio
// means that the machine was slow for a while. What was learned of wide passes must not outlast that, because drafts
// that seem not to pay are not verified and would never be measured again.
constexpr double outlier_ratio = 8;
constexpr double faster_ratio = 3;
constexpr double certain_deviations = 4;  // standard deviations of the prediction for a pass of that size
constexpr double resolvable_us = 100;     // a smaller difference is no reason to call a pass disturbed
constexpr double pass_us_max = 3.6e9;     // no pass takes an hour
constexpr std::uint64_t outliers_count_after = 16;
constexpr std::uint32_t outliers_believed = 3;

}  // namespace

// Features are scaled to similar sizes, which keeps the recursion well conditioned. A pass between two bends is shared
// between them.
cost_model::vector cost_model::features(const work_size& size, double experts) const {
  const auto rows = static_cast<double>(size.rows);
  // For a dense model the last feature is always 0, which isolates its parameter and does not change any other sum.
  vector x{1.0,
           rows / 64,
           static_cast<double>(size.pairs) / 65536,
           static_cast<double>(size.context) / 4096,
           static_cast<double>(size.logits) / 64,
           experts > 0 ? experts / static_cast<double>(experts_.of().all()) : 0};
  const auto above = std::upper_bound(bends.begin(), bends.end(), rows);
  if (above == bends.begin()) return x;
  const auto i = static_cast<std::size_t>(above - bends.begin()) - 1;
  if (above == bends.end()) {
    x[laws_count + i] = 1;
    return x;
  }
  const double share = (rows - bends[i]) / (*above - bends[i]);
  x[laws_count + i] = 1 - share;
  x[laws_count + i + 1] = share;
  return x;
}

cost_model::cost_model(const mixture_shape& of) : experts_(of) {
  for (std::size_t i = 0; i < parameters_count; ++i) {
    const double spread = i < laws_count ? law_spread : bend_spread;
    covariance_[i][i] = prior_[i] = spread * spread;
  }
}

double cost_model::predict_us(const vector& x) const {
  double us = 0;
  for (std::size_t i = 0; i < parameters_count; ++i) us += weights_[i] * x[i];
  return us > 0 ? std::min(us, pass_us_max) : 0;
}

microseconds cost_model::predict(const work_size& size) const {
  return microseconds(static_cast<std::int64_t>(predict_us(features(size, predict_experts(size)))));
}

void cost_model::observe_text(const work_size& size, std::uint64_t experts) {
  experts_.observe(size.rows, size.logits, experts);
}

void cost_model::observe(const work_size& size, microseconds took, std::uint64_t experts) {
  const auto measured = static_cast<double>(took.count());
  const bool is_counted = experts > 0 && experts <= experts_.of().all();
  const vector x = features(size, is_counted ? static_cast<double>(experts) : predict_experts(size));
  const double predicted = predict_us(x);
  if (observed_count_ == 0) scale_ = std::max(measured, 1.0);

  vector px{};
  const double noise = std::max(noise_ratio * std::max(measured, predicted), resolution_us) / scale_;
  double variance = noise * noise;
  double error = measured;
  for (std::size_t i = 0; i < parameters_count; ++i) {
    for (std::size_t j = 0; j < parameters_count; ++j) px[i] += covariance_[i][j] * x[j];
    error -= weights_[i] * x[i];
  }
  for (std::size_t i = 0; i < parameters_count; ++i) variance += x[i] * px[i];

  // For sizes that were never seen, a large error means that the curve is wrong and there is something to learn.
  const bool is_certain =
      observed_count_ > outliers_count_after && std::abs(error) > certain_deviations * std::sqrt(variance) * scale_;
  if (is_certain && measured > outlier_ratio * (predicted + resolvable_us)) {
    const double ratio = measured / (predicted + resolvable_us);
    slower_by_ = outliers_in_row_ == 0 ? ratio : std::min(slower_by_, ratio);
    if (++outliers_in_row_ == outliers_believed) change_speed(slower_by_);
    return;
  }
  outliers_in_row_ = 0;
  if (is_certain && faster_ratio * (measured + resolvable_us) < predicted) {
    const double ratio = (measured + resolvable_us) / predicted;
    faster_by_ = fast_in_row_ == 0 ? ratio : std::max(faster_by_, ratio);
    if (++fast_in_row_ == outliers_believed) change_speed(faster_by_);
    return;
  }
  fast_in_row_ = 0;
  ++observed_count_;

  for (std::size_t i = 0; i < parameters_count; ++i) weights_[i] += px[i] / variance * error;
  for (std::size_t i = 0; i < parameters_count; ++i) {
    for (std::size_t j = 0; j < parameters_count; ++j) {
      covariance_[i][j] -= px[i] * px[j] / variance;
    }
  }
  for (std::size_t i = 0; i < parameters_count; ++i) {
    const double drift = drift_ratio * weights_[i] / scale_;
    covariance_[i][i] += drift * drift;
    // Unused parameters must not grow without bound. Scaling a row and its column keeps the matrix a covariance.
    if (covariance_[i][i] <= prior_[i]) continue;
    const double shrink = std::sqrt(prior_[i] / covariance_[i][i]);
    for (std::size_t j = 0; j < parameters_count; ++j) {
      covariance_[i][j] *= shrink;
      covariance_[j][i] *= shrink;
    }
  }
}

/// Rescales everything learned for a machine that became slower or faster: the curve keeps its shape and certainty.
void cost_model::change_speed(double ratio) {
  outliers_in_row_ = 0;
  fast_in_row_ = 0;
  scale_ *= ratio;
  for (double& w : weights_) w *= ratio;
}

step_cost step_cost_at(const cost_model& passes, std::uint64_t context) {
  constexpr std::uint64_t more = 32;
  if (passes.is_unmeasured()) return {};
  const auto one = static_cast<double>(passes.predict(size_of_run(context, 1, 1)).count());
  const auto many = static_cast<double>(passes.predict(size_of_run(context, 1 + more, 1 + more)).count());
  const auto bounded = [](double x) { return static_cast<std::uint32_t>(std::clamp(x, 0.0, 1e9)); };
  return {.pass_us = bounded(one), .row_ns = bounded((many - one) / more * 1000)};
}

}  // namespace redline::cost
