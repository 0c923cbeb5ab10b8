#include "actors/target_probe.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

TEST(target_probe, knows_the_rest_of_an_answer_and_repeats_its_end) {
  target_probe probe;
  EXPECT_TRUE(probe.known({1}, 0, 3).empty());
  probe.replay({1}, {7, 8, 9});
  EXPECT_EQ(probe.known({1}, 0, 2), (std::vector<token>{7, 8}));
  EXPECT_EQ(probe.known({1}, 2, 3), (std::vector<token>{9, 9, 9}));
  EXPECT_EQ(probe.known({1}, 50, 1), (std::vector<token>{9}));
  EXPECT_TRUE(probe.known({2}, 0, 3).empty());
}

TEST(target_probe, forgets_what_is_finished) {
  target_probe probe;
  probe.replay({1}, {7});
  probe.note({1}, {4, 2});
  probe.note({2}, {1, 1});
  probe.note({1}, {0, 0});
  EXPECT_EQ(probe.finish({1}), (std::vector<target_probe::step>{{4, 2}, {0, 0}}));
  EXPECT_TRUE(probe.finish({1}).empty());
  EXPECT_TRUE(probe.known({1}, 0, 1).empty());
  EXPECT_EQ(probe.finish({2}).size(), 1u);
}

}  // namespace
}  // namespace redline::actors
