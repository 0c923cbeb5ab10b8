#include "runtime/draft/handover_price.hpp"

#include <algorithm>

namespace redline::draft {
namespace {

/// How much the newest round counts; the first ones count more.
constexpr double weight_min = 1.0 / 32;
/// A round that took longer than so many expected ones was held up by something else, and counts as this.
constexpr double expected_max = 3;

}  // namespace

void handover_price::note(bool by_model, double answered_us, double expected_us) {
  mean& m = by_model ? by_model_ : ready_;
  ++m.count;
  const double weight = std::max(weight_min, 1.0 / m.count);
  m.excess_us += weight * (std::min(answered_us, expected_max * expected_us) - expected_us - m.excess_us);
}

double handover_price::us() const {
  if (by_model_.count < rounds_min || ready_.count < rounds_min) return 0;
  return std::max(0.0, by_model_.excess_us - ready_.excess_us);
}

}  // namespace redline::draft
