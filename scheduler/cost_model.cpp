#include "scheduler/cost_model.hpp"

#include <algorithm>
#include <cmath>

namespace redline::scheduler {
namespace {

// 0.98: a change of speed is followed within about fifty passes.
constexpr double forgetting = 0.98;
// A pass that took this many times longer than predicted was disturbed by something else and would teach nonsense.
constexpr double outlier_ratio = 8;
constexpr std::uint64_t outliers_count_after = 16;

}  // namespace

// Scaled so that the three features have similar size, which keeps the recursion well conditioned.
cost_model::vector cost_model::features(const work_size& size) {
  return {1.0, static_cast<double>(size.rows) / 64.0, static_cast<double>(size.pairs) / 65536.0};
}

cost_model::cost_model() {
  for (std::size_t i = 0; i < 3; ++i) covariance_[i][i] = 1e9;
}

microseconds cost_model::predict(const work_size& size) const {
  const vector x = features(size);
  double us = 0;
  for (std::size_t i = 0; i < 3; ++i) us += std::max(weights_[i], 0.0) * x[i];
  return microseconds(static_cast<std::int64_t>(us));
}

void cost_model::observe(const work_size& size, microseconds took) {
  const auto measured = static_cast<double>(took.count());
  const auto predicted = static_cast<double>(predict(size).count());
  if (observed_count_ > outliers_count_after && measured > outlier_ratio * (predicted + 100)) return;
  ++observed_count_;
  const vector x = features(size);
  vector px{};
  double denominator = forgetting;
  double error = measured;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) px[i] += covariance_[i][j] * x[j];
    error -= weights_[i] * x[i];
  }
  for (std::size_t i = 0; i < 3; ++i) denominator += x[i] * px[i];
  for (std::size_t i = 0; i < 3; ++i) weights_[i] += px[i] / denominator * error;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      covariance_[i][j] = (covariance_[i][j] - px[i] * px[j] / denominator) / forgetting;
      // Without this bound, directions that are never exercised would grow until they overflow.
      covariance_[i][j] = std::clamp(covariance_[i][j], -1e9, 1e9);
    }
  }
}

}  // namespace redline::scheduler
