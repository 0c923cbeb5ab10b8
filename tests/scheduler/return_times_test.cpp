#include "scheduler/return_times.hpp"

#include <gtest/gtest.h>

namespace redline::scheduler {
namespace {

constexpr double memory = 16;

/// The shortest step within which the probability is at least `chance`.
microseconds first_within(const return_times::chances& all, double chance) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] >= chance) return return_times::step(i);
  }
  return microseconds::max();
}

TEST(return_times, expects_nothing_before_anything_was_seen) {
  const return_times blank(memory);
  for (const double chance : blank.predict({}, blank)) EXPECT_EQ(chance, 0);
  EXPECT_EQ(blank.typical(), microseconds{0});
}

TEST(return_times, learns_within_a_few_rounds) {
  const return_times blank(memory);
  return_times t(memory);
  for (int i = 0; i < 3; ++i) t.observe(microseconds{300});
  const auto chances = t.predict({}, blank);
  EXPECT_LE(first_within(chances, 0.7), microseconds{363});
  EXPECT_LE(first_within(chances, 0.98), microseconds{512}) << "three rounds may not have shown the longest time";
  EXPECT_EQ(chances[2], 0) << "never this soon";
  EXPECT_GT(chances.back(), 0.98);
  EXPECT_EQ(t.typical(), return_times::step(5));
}

TEST(return_times, expects_sooner_what_has_been_away_for_a_while) {
  const return_times blank(memory);
  return_times t(memory);
  for (int i = 0; i < 40; ++i) t.observe(microseconds{i % 2 == 0 ? 1'000 : 20'000});
  EXPECT_NEAR(t.predict({}, blank)[9], 0.5, 0.1) << "one of two comes within 1.4 ms";
  const auto later = t.predict(microseconds{2'000}, blank);
  EXPECT_LT(later[9], 0.05) << "it was not one of the quick ones";
  EXPECT_GT(later.back(), 0.9);
}

TEST(return_times, gives_up_what_is_later_than_ever) {
  const return_times blank(memory);
  return_times t(memory);
  for (int i = 0; i < 40; ++i) t.observe(microseconds{300});
  for (const double chance : t.predict(microseconds{600}, blank)) EXPECT_LT(chance, 0.01);
}

TEST(return_times, counts_what_comes_after_the_last_step_as_gone) {
  const return_times blank(memory);
  return_times t(memory);
  for (int i = 0; i < 8; ++i) t.observe(microseconds{300});
  for (int i = 0; i < 16; ++i) t.observe(microseconds{3'000'000});
  EXPECT_LT(t.predict({}, blank).back(), 0.5) << "the slow one was quick before";
}

TEST(return_times, a_new_sequence_is_taken_for_one_like_the_others) {
  return_times others(256);
  for (int i = 0; i < 100; ++i) others.observe(microseconds{500});
  return_times t(memory);
  EXPECT_GT(t.predict({}, others)[7], 0.9);
  for (int i = 0; i < 5; ++i) t.observe(microseconds{3'000'000});
  EXPECT_LT(t.predict({}, others).back(), 0.5) << "until it shows that it is not";
}

}  // namespace
}  // namespace redline::scheduler
