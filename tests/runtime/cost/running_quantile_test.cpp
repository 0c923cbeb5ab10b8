#include "runtime/cost/running_quantile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::cost {
namespace {

TEST(running_quantile, has_as_many_numbers_below_it_as_was_asked_for) {
  for (const double share : {0.5, 0.9, 0.95}) {
    std::mt19937 random(3);
    std::lognormal_distribution<double> numbers(1, 0.3);
    running_quantile q(share, 1, 0.1);
    for (int i = 0; i < 1000; ++i) q.observe(numbers(random));
    int below = 0;
    for (int i = 0; i < 10'000; ++i) {
      const double x = numbers(random);
      below += x <= q.value() ? 1 : 0;
      q.observe(x);
    }
    EXPECT_NEAR(below / 10'000.0, share, 0.02);
  }
}

TEST(running_quantile, forgets_what_is_over) {
  running_quantile q(0.95, 1, 0.1);
  for (int i = 0; i < 20; ++i) q.observe(9);
  EXPECT_GT(q.value(), 3);
  for (int i = 0; i < 500; ++i) q.observe(1);
  EXPECT_LT(q.value(), 1.2);
}

}  // namespace
}  // namespace redline::cost
