#include "bench/studies/common/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace redline::studies {
namespace {

TEST(statistics, of_nothing_are_zero) {
  EXPECT_EQ(mean({}), 0);
  EXPECT_EQ(percentile({}, 50), 0);
  EXPECT_EQ(covered({}), 0);
  EXPECT_EQ(ratio(1, 0), 0);
  EXPECT_EQ(ratio(0, 0), 0);
}

// numpy.percentile([15, 20, 35, 40, 50], [...]) gives the same numbers.
TEST(statistics, percentiles_lie_between_values_in_proportion) {
  const std::vector<double> values{40, 15, 50, 35, 20};
  EXPECT_DOUBLE_EQ(percentile(values, 0), 15);
  EXPECT_DOUBLE_EQ(percentile(values, 10), 17);
  EXPECT_DOUBLE_EQ(percentile(values, 40), 29);
  EXPECT_DOUBLE_EQ(percentile(values, 50), 35);
  EXPECT_DOUBLE_EQ(percentile(values, 99), 49.6);
  EXPECT_DOUBLE_EQ(percentile(values, 100), 50);
  EXPECT_DOUBLE_EQ(percentile({7}, 99), 7);
}

TEST(statistics, percentiles_pass_over_what_is_no_number) {
  EXPECT_EQ(percentile({NAN, 3, std::numeric_limits<double>::infinity()}, 90), 3);
  EXPECT_EQ(percentile({NAN}, 90), 0);
}

TEST(statistics, windows_that_overlap_count_once) {
  EXPECT_DOUBLE_EQ(covered({{10, 12}, {1, 3}, {2, 5}, {2, 2.5}}), 6);
  EXPECT_DOUBLE_EQ(covered({{3, 1}}), 0);
}

TEST(statistics, mean_is_the_mean) { EXPECT_DOUBLE_EQ(mean(std::vector<double>{1, 2, 6}), 3); }

}  // namespace
}  // namespace redline::studies
