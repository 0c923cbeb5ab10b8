#include "scheduler/return_times.hpp"

#include <algorithm>
#include <cmath>

namespace redline::scheduler {
namespace {

constexpr double first_step_us = 64;
constexpr double prior_rounds = 2;
// The part of a round that always counts as never coming back. It keeps the chance at 0 once a sequence is later than
// it ever was.
constexpr double doubt = 1.0 / 32;
// The part of observed times that counts one step later: a few rounds do not show the longest time.
constexpr double spread = 0.25;

const std::array<microseconds, return_times::steps_count> all_steps = [] {
  std::array<microseconds, return_times::steps_count> all{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = microseconds{std::llround(first_step_us * std::exp2(static_cast<double>(i) / 2))};
  }
  return all;
}();

}  // namespace

microseconds return_times::step(std::size_t i) { return all_steps[i]; }

std::size_t return_times::step_of(microseconds after) {
  return static_cast<std::size_t>(std::lower_bound(all_steps.begin(), all_steps.end(), after) - all_steps.begin());
}

void return_times::observe(microseconds after) {
  for (double& c : counts_) c *= kept_;
  sum_ = sum_ * kept_ + 1;
  const std::size_t i = step_of(after);
  counts_[i] += i < steps_count - 1 ? 1 - spread : 1;
  if (i < steps_count - 1) counts_[i + 1] += spread;
}

return_times::chances return_times::predict(microseconds since, const return_times& prior) const {
  const double prior_weight = prior.sum_ > 0 ? prior_rounds / std::max(prior.sum_, prior_rounds) : 0;
  counts up_to{};  // rounds whose time was at most this step's
  double sum = 0;
  for (std::size_t i = 0; i < up_to.size(); ++i) up_to[i] = sum += counts_[i] + prior_weight * prior.counts_[i];
  // Between two steps the times are assumed to be evenly spread.
  const auto rounds_within = [&](microseconds after) {
    const std::size_t i = step_of(after);
    if (i == steps_count) return up_to[steps_count - 1];
    const double before = i == 0 ? 0 : up_to[i - 1];
    const microseconds begin = i == 0 ? microseconds{0} : all_steps[i - 1];
    return before + (up_to[i] - before) * static_cast<double>((after - begin).count()) /
                        static_cast<double>((all_steps[i] - begin).count());
  };
  const double gone = rounds_within(since);
  const double left = sum - gone + doubt;
  chances all{};
  for (std::size_t i = 0; i < steps_count; ++i) all[i] = (rounds_within(since + all_steps[i]) - gone) / left;
  return all;
}

microseconds return_times::typical() const {
  const double half = (sum_ - counts_[steps_count]) / 2;
  double sum = 0;
  for (std::size_t i = 0; i < steps_count && half > 0; ++i) {
    if ((sum += counts_[i]) >= half) return all_steps[i];
  }
  return microseconds{0};
}

}  // namespace redline::scheduler
