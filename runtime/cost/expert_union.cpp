#include "runtime/cost/expert_union.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/cost/learning.hpp"

namespace redline::cost {

expert_union::curve expert_union::of_layer(std::uint64_t rows) const {
  if (rows == 0) return {};
  const double all = of_.experts;
  if (of_.used >= of_.experts) return {.experts = all, .slope = 0};
  const double missed = std::log1p(-(of_.used / all));  // logarithm of the chance that a row leaves an expert out
  const auto n = static_cast<double>(rows);
  const double independent = std::pow(n, growth_);
  const double left = std::exp(missed * independent);
  return {.experts = all * (1 - left), .slope = -all * left * missed * independent * std::log(n)};
}

expert_union::curve expert_union::of_pass(std::uint64_t rows, std::uint64_t logits) const {
  const curve most = of_layer(rows), last = of_layer(std::min(logits, rows));
  const double before = of_.layers - 1.0;
  return {.experts = before * most.experts + last.experts, .slope = before * most.slope + last.slope};
}

double expert_union::predict(std::uint64_t rows, std::uint64_t logits) const {
  return of_.is_dense() ? 0 : of_pass(rows, logits).experts;
}

void expert_union::observe(std::uint64_t rows, std::uint64_t logits, std::uint64_t touched) {
  if (of_.is_dense() || touched == 0 || touched > of_.all()) return;
  const curve expected = of_pass(rows, logits);
  if (expected.slope <= 0) return;  // one row, or all experts: such a pass does not show how rows differ
  const double noise = noise_ratio * static_cast<double>(touched);
  const double gain = variance_ * expected.slope / (expected.slope * expected.slope * variance_ + noise * noise);
  growth_ = std::clamp(growth_ + gain * (static_cast<double>(touched) - expected.experts), 0.0, 1.0);
  variance_ *= 1 - gain * expected.slope;
  variance_ = std::min(variance_ + drift_ratio * drift_ratio, 1.0);  // texts change
}

}  // namespace redline::cost
