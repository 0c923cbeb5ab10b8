#include "runtime/actor/restart_policy.hpp"

#include <gtest/gtest.h>

namespace redline::actor {
namespace {

constexpr address a{1}, b{2}, c{3}, stranger{9};
constexpr instant at(std::int64_t seconds) { return instant{microseconds{seconds * 1'000'000}}; }
constexpr restart_limit twice_in_ten{.count_max = 2, .within = microseconds{10'000'000}};
using list = std::vector<address>;

TEST(restart_policy, restarts_only_the_dead_one_for_one) {
  restart_policy p(restart_strategy::one_for_one, twice_in_ten, {a, b, c});
  EXPECT_EQ(p.on_down(b, at(0)), list{b});
}

TEST(restart_policy, restarts_the_rest_that_started_later) {
  restart_policy p(restart_strategy::rest_for_one, {.count_max = 9}, {a, b, c});
  EXPECT_EQ(p.on_down(b, at(0)), (list{b, c}));
  EXPECT_EQ(p.on_down(a, at(0)), (list{a, b, c}));
  EXPECT_EQ(p.on_down(c, at(0)), list{c});
}

TEST(restart_policy, gives_up_when_deaths_come_too_often) {
  restart_policy p(restart_strategy::one_for_one, twice_in_ten, {a, b});
  EXPECT_FALSE(p.on_down(a, at(0)).empty());
  EXPECT_FALSE(p.on_down(b, at(5)).empty());
  EXPECT_TRUE(p.on_down(a, at(9)).empty());
}

TEST(restart_policy, forgets_old_deaths) {
  restart_policy p(restart_strategy::one_for_one, twice_in_ten, {a});
  for (std::int64_t t = 0; t < 100; t += 6) EXPECT_FALSE(p.on_down(a, at(t)).empty()) << t;
}

TEST(restart_policy, knows_its_own_and_blames_them_only_for_their_deaths) {
  restart_policy p(restart_strategy::one_for_one, twice_in_ten, {a, b});
  EXPECT_TRUE(p.has(a));
  EXPECT_FALSE(p.has(stranger));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(p.on_down(stranger, at(0)).empty());
  EXPECT_FALSE(p.on_down(a, at(0)).empty());
}

}  // namespace
}  // namespace redline::actor
