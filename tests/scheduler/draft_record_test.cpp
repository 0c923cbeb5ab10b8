#include "scheduler/draft_record.hpp"

#include <gtest/gtest.h>

#include <array>

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

TEST(source_records, keep_sources_apart) {
  source_records r;
  const draft_stretch first[] = {{0, 4}};
  const draft_stretch second[] = {{2, 4}};
  for (int i = 0; i < 40; ++i) {
    r.note(first, 4, 4);
    r.note(second, 4, 0);
    EXPECT_EQ(r.chance({}, 0, nullptr), r.chance(first, 0, nullptr)) << "what no stretch covers is of source 0";
  }
  EXPECT_GT(r.chance(first, 0, nullptr), 0.9);
  EXPECT_LT(r.chance(second, 0, nullptr), 0.4);
  EXPECT_NEAR(r.chance(std::array{draft_stretch{1, 4}}, 0, nullptr), 0.8, 1e-9) << "never seen";
}

TEST(source_records, blame_the_stretch_that_was_wrong) {
  source_records r;
  const draft_stretch both[] = {{0, 3}, {1, 5}};
  for (int i = 0; i < 40; ++i) r.note(both, 8, 3);
  EXPECT_GT(r.chance(both, 2, nullptr), 0.9);
  EXPECT_LT(r.chance(both, 3, nullptr), 0.2);
  // A draft cut inside of the first stretch says nothing of the second.
  source_records cut;
  for (int i = 0; i < 40; ++i) cut.note(both, 2, 2);
  EXPECT_NEAR(cut.chance(both, 3, nullptr), 0.8, 1e-9);
}

TEST(source_records, keep_what_they_know_while_others_draft) {
  source_records r;
  const draft_stretch sure[] = {{6, 80}};
  const draft_stretch weak[] = {{1, 4}};
  for (int i = 0; i < 20; ++i) r.note(sure, 80, 80);
  const double before = r.chance(sure, 50, nullptr);
  EXPECT_GT(before, 0.95);
  for (int i = 0; i < 500; ++i) r.note(weak, 4, 0);
  EXPECT_EQ(r.chance(sure, 50, nullptr), before);
}

TEST(source_records, count_each_stretch_of_a_source_that_has_several) {
  source_records r;
  // Twos are sure, ones never right: the draft always fails at its second one.
  const draft_stretch mixed[] = {{2, 5}, {1, 1}, {2, 5}, {1, 1}};
  for (int i = 0; i < 60; ++i) {
    r.note(mixed, 12, 11);
    r.note(mixed, 12, 5);
  }
  EXPECT_GT(r.chance(mixed, 2, nullptr), 0.95);
  EXPECT_GT(r.chance(mixed, 9, nullptr), 0.95);
  EXPECT_LT(r.chance(mixed, 5, nullptr), 0.7);
  EXPECT_LT(r.chance(mixed, 11, nullptr), 0.4);
}

TEST(source_records, take_any_number_for_a_source) {
  source_records r;
  const draft_stretch odd[] = {{255, 0xffffffffU}, {7, 0xffffffffU}};
  r.note(odd, 8, 9);
  EXPECT_LE(r.chance(odd, 0xffffffffU, nullptr), 1.0);
}

}  // namespace
}  // namespace redline::scheduler
