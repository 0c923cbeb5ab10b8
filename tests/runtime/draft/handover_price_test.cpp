#include "runtime/draft/handover_price.hpp"

#include <gtest/gtest.h>

namespace redline::draft {
namespace {

constexpr std::uint32_t many = 200;

void play(handover_price& p, std::uint32_t rounds, double ready_us, double by_model_us) {
  for (std::uint32_t i = 0; i < rounds; ++i) {
    p.note(false, ready_us, 1000);
    p.note(true, by_model_us, 1000);
  }
}

TEST(handover_price, is_what_model_drafts_are_answered_later) {
  handover_price p;
  play(p, many, 1100, 1800);
  EXPECT_NEAR(p.us(), 700, 1e-6);
}

TEST(handover_price, is_nothing_before_both_kinds_were_seen) {
  handover_price p;
  play(p, handover_price::rounds_min - 1, 1000, 2000);
  EXPECT_EQ(p.us(), 0);
  for (std::uint32_t i = 0; i < many; ++i) p.note(true, 2000, 1000);
  EXPECT_EQ(p.us(), 0);
  p.note(false, 1000, 1000);
  EXPECT_NEAR(p.us(), 1000, 1e-6);
}

TEST(handover_price, is_never_a_gain) {
  handover_price p;
  play(p, many, 1500, 1000);
  EXPECT_EQ(p.us(), 0);
}

TEST(handover_price, counts_longer_passes_by_what_they_take_longer) {
  handover_price p;
  for (std::uint32_t i = 0; i < many; ++i) {
    p.note(false, 1000, 1000);
    p.note(true, 5500, 5000);
  }
  EXPECT_NEAR(p.us(), 500, 1e-6);
}

TEST(handover_price, one_round_that_was_held_up_moves_it_little) {
  handover_price p;
  play(p, many, 1000, 1500);
  p.note(true, 1e9, 1000);
  EXPECT_LT(p.us(), 600);
}

TEST(handover_price, follows_the_machine) {
  handover_price p;
  play(p, many, 1000, 2000);
  play(p, many, 1000, 1000);
  EXPECT_LT(p.us(), 20);
}

}  // namespace
}  // namespace redline::draft
