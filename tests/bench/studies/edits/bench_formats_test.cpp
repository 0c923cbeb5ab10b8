#include "bench/studies/edits/bench_formats.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace redline::studies {
namespace {

using tokens = std::vector<token>;

TEST(bench_formats, counts_a_round_for_each_run_and_the_token_after_it) {
  const tokens expected{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(rounds_along(expected, tokens{}), 0u);
  EXPECT_EQ(rounds_along(expected, tokens{1, 2, 3, 4, 5, 6, 9}), 1u) << "the whole text and one more";
  EXPECT_EQ(rounds_along(expected, tokens{1, 2, 3, 9, 4, 5, 6, 9}), 2u) << "a replaced token is the one after a run";
  EXPECT_EQ(rounds_along(expected, tokens{5, 6, 9, 1, 2}), 2u) << "a run may begin anywhere";
  EXPECT_EQ(rounds_along(expected, tokens{3, 9, 9, 5}), 4u) << "a single token is no run";
  EXPECT_EQ(rounds_along(tokens{}, tokens{1, 2}), 2u);
}

TEST(bench_formats, takes_the_longest_of_several_runs) {
  EXPECT_EQ(rounds_along(tokens{1, 2, 8, 1, 2, 3, 4}, tokens{1, 2, 3, 4, 9}), 1u);
}

}  // namespace
}  // namespace redline::studies
