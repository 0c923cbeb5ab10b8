#include "runtime/base/portable_math.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline {
namespace {

/// The distance in units in the last place.
double ulps(double got, double wanted) {
  if (got == wanted) return 0;
  return std::fabs(got - wanted) / (std::nextafter(std::fabs(wanted), INFINITY) - std::fabs(wanted));
}

TEST(portable_math, log_is_within_two_units_of_the_last_place) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-1070, 1020), mantissa(1, 2), near(-1e-3, 1e-3);
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? std::ldexp(mantissa(random), static_cast<int>(exponent(random))) : 1 + near(random);
    ASSERT_LE(ulps(portable_log(x), std::log(x)), 2) << x;
  }
  EXPECT_EQ(portable_log(1), 0);
  EXPECT_EQ(portable_log(0), -INFINITY);
  EXPECT_EQ(portable_log(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(portable_log(-1)));
  EXPECT_TRUE(std::isnan(portable_log(NAN)));
}

TEST(portable_math, exp_is_within_two_units_of_the_last_place) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> wide(-744, 709), narrow(-2, 2);
  for (int i = 0; i < 200'000; ++i) {
    const double x = i % 2 == 0 ? wide(random) : narrow(random);
    ASSERT_LE(ulps(portable_exp(x), std::exp(x)), 2) << x;
  }
  EXPECT_EQ(portable_exp(0), 1);
  EXPECT_EQ(portable_exp(-INFINITY), 0);
  EXPECT_EQ(portable_exp(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(portable_exp(NAN)));
}

TEST(portable_math, gives_these_bits_everywhere) {
  EXPECT_EQ(std::bit_cast<std::uint64_t>(portable_log(10.0)), 0x40026bb1bbb55516u);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(portable_exp(1.0)), 0x4005bf0a8b14576au);
  std::uint64_t hash = 0;
  for (int i = 1; i < 100'000; ++i) {
    hash = hash * 31 + std::bit_cast<std::uint64_t>(portable_log(i * 0.37));
    hash = hash * 31 + std::bit_cast<std::uint64_t>(portable_exp(-i * 0.0017));
  }
  EXPECT_EQ(hash, 5187442792944075193u);
}

}  // namespace
}  // namespace redline
