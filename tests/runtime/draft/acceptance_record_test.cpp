#include "runtime/draft/acceptance_record.hpp"

#include <gtest/gtest.h>

namespace redline::draft {
namespace {

using runs = std::vector<graded_segment>;

/// The probability of the token at this position of a draft that has one grade and source.
double chance(const acceptance_record& r, std::uint32_t place, std::uint8_t grade = 3, source from = source::lookup,
              const acceptance_record* prior = nullptr) {
  return r.chance({from, grade, 1}, place, prior);
}
runs of(std::uint32_t count, std::uint8_t grade = 3, source from = source::lookup) { return {{from, grade, count}}; }

TEST(acceptance_record, expects_the_more_the_better_the_grade_before_it_saw_any) {
  const acceptance_record r;
  for (std::uint8_t grade = 1; grade < grades_count; ++grade) {
    EXPECT_GT(chance(r, 0, grade), chance(r, 0, grade - 1));
    EXPECT_EQ(chance(r, 500, grade), chance(r, 0, grade));
  }
}

TEST(acceptance_record, learns_the_share_by_place) {
  acceptance_record r;
  for (int i = 0; i < 60; ++i) r.learn(of(8), 4, true);  // four are right, the fifth is wrong, the rest is unknown
  EXPECT_GT(chance(r, 0), 0.93);
  EXPECT_GT(chance(r, 3), 0.95);
  EXPECT_LT(chance(r, 4), 0.4);
  EXPECT_LT(chance(r, 5), 0.4) << "in one segment with the fifth";
}

TEST(acceptance_record, expects_of_deeper_places_what_it_saw_of_nearer_ones_until_it_knows) {
  acceptance_record r;
  for (int i = 0; i < 40; ++i) r.learn(of(4), 4, false);
  EXPECT_GT(chance(r, 60), 0.95);
  for (int i = 0; i < 40; ++i) r.learn(of(70), 60, true);
  EXPECT_GT(chance(r, 59), 0.9);
}

TEST(acceptance_record, counts_nothing_of_what_was_not_compared) {
  acceptance_record r;
  for (int i = 0; i < 60; ++i) r.learn(of(8), 0, false);
  EXPECT_EQ(chance(r, 0), chance(acceptance_record(), 0));
}

TEST(acceptance_record, begins_with_what_the_tenants_answers_showed) {
  acceptance_record prior;
  for (int i = 0; i < 100; ++i) prior.learn(of(4), 0, true);
  acceptance_record r;
  EXPECT_LT(chance(r, 0, 3, source::lookup, &prior), 0.4);
  for (int i = 0; i < 60; ++i) r.learn(of(4), 4, false);
  EXPECT_GT(chance(r, 0, 3, source::lookup, &prior), 0.7) << "its own drafts count more";
}

TEST(acceptance_record, follows_a_source_that_becomes_right) {
  acceptance_record r;
  for (int i = 0; i < 200; ++i) r.learn(of(4), 0, true);
  EXPECT_LT(chance(r, 0), 0.4);
  for (int i = 0; i < 20; ++i) r.learn(of(4), 4, false);
  EXPECT_GT(chance(r, 0), 0.7);
}

// A text that was copied for a long time may now be new: positions that drafts no longer reach become like nearer ones.
TEST(acceptance_record, forgets_places_that_drafts_no_longer_reach) {
  acceptance_record r;
  for (int i = 0; i < 20; ++i) r.learn(of(70), 70, false);
  EXPECT_GT(chance(r, 65), 0.95);
  for (int i = 0; i < 200; ++i) r.learn(of(70), 0, true);
  EXPECT_LT(chance(r, 65), 0.4);
}

TEST(acceptance_record, keeps_sources_and_grades_apart) {
  acceptance_record r;
  for (int i = 0; i < 40; ++i) {
    r.learn(of(4), 4, false);
    r.learn(of(4, 2), 0, true);
    r.learn(of(4, 3, source::model), 0, true);
  }
  EXPECT_GT(chance(r, 0), 0.9);
  EXPECT_LT(chance(r, 0, 2), 0.4);
  EXPECT_LT(chance(r, 0, 3, source::model), 0.4);
  EXPECT_EQ(chance(r, 0, 3, source::prediction), chance(acceptance_record(), 0)) << "never seen";
}

TEST(acceptance_record, keeps_tokens_that_another_source_contests_apart) {
  acceptance_record r;
  const runs contested = {{.grade = 3, .count = 4, .contested = true}};
  const runs uncontested = {{.grade = 3, .count = 4}};
  for (int i = 0; i < 40; ++i) {
    r.learn(contested, 0, true);
    r.learn(uncontested, 4, false);
  }
  EXPECT_LT(r.chance(contested[0], 0, nullptr), 0.4);
  EXPECT_GT(r.chance(uncontested[0], 0, nullptr), 0.9);
  const runs both = {{.grade = 3, .count = 2}, {.grade = 3, .count = 2, .contested = true}};
  const auto parts = r.parts(both, nullptr);
  EXPECT_GT(parts.front().chance(), 0.9);
  EXPECT_LT(parts.back().chance(), 0.4);
}

TEST(acceptance_record, moves_the_slower_the_more_its_first_guess_weighs) {
  acceptance_record light({.first_weight = 1}), heavy({.first_weight = 100});
  for (acceptance_record* const r : {&light, &heavy}) r->learn(of(1), 0, true);
  EXPECT_LT(chance(light, 0), chance(heavy, 0));
  EXPECT_NEAR(chance(heavy, 0), chance(acceptance_record(), 0), 0.02);
}

TEST(acceptance_record, remembers_the_longer_the_more_drafts_it_keeps) {
  acceptance_record brief({.remembered_drafts = 3}), faithful({.remembered_drafts = 100});
  for (acceptance_record* const r : {&brief, &faithful}) {
    for (int i = 0; i < 50; ++i) r->learn(of(1), 1, false);
    for (int i = 0; i < 5; ++i) r->learn(of(1), 0, true);
  }
  EXPECT_LT(chance(brief, 0), 0.6);
  EXPECT_GT(chance(faithful, 0), 0.8);
}

TEST(acceptance_record, blames_the_run_that_was_wrong) {
  acceptance_record r;
  const runs both = {{source::lookup, 3, 3}, {source::model, 3, 5}};
  for (int i = 0; i < 40; ++i) r.learn(both, 3, true);
  EXPECT_GT(chance(r, 2), 0.9);
  EXPECT_LT(chance(r, 3, 3, source::model), 0.4);
  acceptance_record cut;
  for (int i = 0; i < 40; ++i) cut.learn(both, 2, false);
  EXPECT_EQ(chance(cut, 3, 3, source::model), chance(acceptance_record(), 3)) << "the answer ended before it";
}

TEST(acceptance_record, counts_each_run_of_a_source_that_has_several) {
  acceptance_record r;
  // Grade 6 is sure and grade 1 is never right, so the draft always fails at one of the grade 1 tokens.
  const runs mixed = {{source::model, 6, 5}, {source::model, 1, 1}, {source::model, 6, 5}, {source::model, 1, 1}};
  for (int i = 0; i < 60; ++i) {
    r.learn(mixed, 11, true);
    r.learn(mixed, 5, true);
  }
  EXPECT_GT(chance(r, 2, 6, source::model), 0.95);
  EXPECT_GT(chance(r, 9, 6, source::model), 0.95);
  EXPECT_LT(chance(r, 5, 1, source::model), 0.7);
  EXPECT_LT(chance(r, 11, 1, source::model), 0.4);
}

TEST(acceptance_record, gives_every_token_of_a_draft_its_chance) {
  acceptance_record r;
  for (int i = 0; i < 30; ++i) r.learn(of(100), 20, true);
  const runs draft = {{source::prediction, 5, 3}, {source::lookup, 3, 90}};
  std::uint32_t place = 0;
  for (const draft_part& part : r.parts(draft, nullptr)) {
    const bool is_predicted = place < 3;
    EXPECT_EQ(part.from, is_predicted ? source::prediction : source::lookup);
    for (std::uint32_t i = 0; i < part.count; ++i, ++place) {
      EXPECT_NEAR(part.chance(), chance(r, place, is_predicted ? 5 : 3, part.from), 1e-4) << place;
    }
  }
  EXPECT_EQ(place, 93u);
}

}  // namespace
}  // namespace redline::draft
