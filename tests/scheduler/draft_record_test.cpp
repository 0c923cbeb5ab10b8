#include "scheduler/draft_record.hpp"

#include <gtest/gtest.h>

namespace redline::scheduler {
namespace {

TEST(draft_record, expects_most_tokens_before_it_saw_any) {
  const draft_record r;
  EXPECT_NEAR(r.chance(0, nullptr), 0.8, 1e-9);
  EXPECT_NEAR(r.chance(500, nullptr), 0.8, 1e-9);
}

TEST(draft_record, learns_the_share_by_place) {
  draft_record r;
  for (int i = 0; i < 60; ++i) r.note(8, 4);  // four are right, the fifth is wrong, the rest says nothing
  EXPECT_GT(r.chance(0, nullptr), 0.95);
  EXPECT_GT(r.chance(3, nullptr), 0.95);
  EXPECT_LT(r.chance(4, nullptr), 0.2);
  EXPECT_LT(r.chance(5, nullptr), 0.2) << "of one stretch with the fifth";
}

TEST(draft_record, believes_deeper_places_to_be_like_nearer_ones_until_it_knows) {
  draft_record r;
  for (int i = 0; i < 40; ++i) r.note(4, 4);
  EXPECT_GT(r.chance(60, nullptr), 0.95);
  for (int i = 0; i < 40; ++i) r.note(70, 60);
  EXPECT_GT(r.chance(59, nullptr), 0.9);
}

TEST(draft_record, starts_from_what_is_typical) {
  draft_record typical;
  for (int i = 0; i < 100; ++i) typical.note(4, 0);
  draft_record r;
  EXPECT_LT(r.chance(0, &typical), 0.2);
  for (int i = 0; i < 60; ++i) r.note(4, 4);
  EXPECT_GT(r.chance(0, &typical), 0.8) << "its own drafts count more";
}

TEST(draft_record, comes_back_to_a_source_that_failed_when_nothing_is_tried) {
  draft_record r;
  for (int i = 0; i < 60; ++i) r.note(4, 0);
  const double low = r.chance(0, nullptr);
  EXPECT_LT(low, 0.2);
  for (int i = 0; i < 60; ++i) r.note(0, 0);
  EXPECT_GT(r.chance(0, nullptr), 0.75);
}

TEST(draft_record, takes_no_more_right_tokens_than_were_looked_at) {
  draft_record r;
  for (int i = 0; i < 100; ++i) r.note(1, 9);
  EXPECT_LE(r.chance(0, nullptr), 1.0);
  EXPECT_LE(r.chance(8, nullptr), 1.0);
}

}  // namespace
}  // namespace redline::scheduler
