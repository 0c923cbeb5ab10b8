#include "runtime/draft/source.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

/// The label of each token.
struct label {
  source from;
  std::uint8_t grade;
  bool contested;
  bool operator==(const label&) const = default;
};
std::vector<label> labels_of(const graded_draft& d) {
  std::vector<label> out;
  for (const graded_segment& run : d.runs) out.insert(out.end(), run.count, {run.from, run.grade, run.contested});
  return out;
}

graded_draft three_runs() {
  graded_draft d;
  d.add(source::prediction, 5, tokens{1, 2, 3});
  d.add(source::lookup, 2, tokens{4, 5});
  d.add(source::model, 6, tokens{6, 7, 8, 9});
  return d;
}

TEST(graded_draft, joins_runs_that_are_alike) {
  graded_draft d;
  d.add(source::lookup, 3, tokens{1, 2});
  d.add(source::lookup, 3, tokens{3});
  d.add(source::lookup, 4, {});
  d.add(source::lookup, 4, tokens{4});
  d.add(source::model, 4, tokens{5});
  ASSERT_EQ(d.runs.size(), 3u);
  EXPECT_EQ(d.runs[0].count, 3u);
  EXPECT_EQ(d.tokens, (tokens{1, 2, 3, 4, 5}));
  graded_draft both = d;
  both.add(d);
  EXPECT_EQ(both.tokens.size(), 10u);
  EXPECT_EQ(both.runs.size(), 6u);
  graded_draft more;
  more.add(source::model, 4, tokens{6});
  d.add(more);
  EXPECT_EQ(d.runs.size(), 3u) << "the last run continues";
}

TEST(graded_draft, truncate_keeps_the_first_tokens_and_their_runs) {
  for (std::size_t count = 0; count <= 12; ++count) {
    graded_draft d = three_runs();
    d.truncate(count);
    const std::size_t kept = std::min<std::size_t>(count, 9);
    const graded_draft whole = three_runs();
    const auto labels = labels_of(whole);
    EXPECT_EQ(d.tokens, tokens(whole.tokens.begin(), whole.tokens.begin() + static_cast<std::ptrdiff_t>(kept)));
    EXPECT_EQ(labels_of(d), std::vector<label>(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(kept)));
    for (const graded_segment& run : d.runs) EXPECT_GT(run.count, 0u) << count;
  }
}

TEST(graded_draft, contest_marks_what_comes_from_a_token_on) {
  for (std::size_t from = 0; from <= 12; ++from) {
    graded_draft d = three_runs();
    d.contest(from);
    auto expected = labels_of(three_runs());
    for (std::size_t i = from; i < expected.size(); ++i) expected[i].contested = true;
    EXPECT_EQ(labels_of(d), expected) << from;
    EXPECT_EQ(d.tokens, three_runs().tokens);
  }
}

TEST(graded_draft, contest_and_truncate_go_together_in_any_order) {
  std::mt19937 random(5);
  for (int world = 0; world < 300; ++world) {
    graded_draft d;
    for (unsigned run = random() % 6; run > 0; --run) {
      d.add(all_sources[random() % std::size(all_sources)], static_cast<std::uint8_t>(random() % grades_count),
            tokens(random() % 5, 7));
    }
    auto expected = labels_of(d);
    for (int step = 0; step < 4; ++step) {
      const std::size_t at = random() % 20;
      if (random() % 2 == 0) {
        d.truncate(at);
        expected.resize(std::min(at, expected.size()), {});
      } else {
        d.contest(at);
        for (std::size_t i = at; i < expected.size(); ++i) expected[i].contested = true;
      }
      ASSERT_EQ(labels_of(d), expected);
      ASSERT_EQ(d.tokens.size(), expected.size());
      for (std::size_t i = 1; i < d.runs.size(); ++i) ASSERT_FALSE(d.runs[i].is_like(d.runs[i - 1]));
    }
  }
}

TEST(grade, grows_with_the_evidence_and_stays_in_range) {
  std::uint8_t before = 0;
  for (std::uint32_t matched = 0; matched < 40; ++matched) {
    EXPECT_GE(grade_of_match(matched), before);
    before = grade_of_match(matched);
    EXPECT_LT(before, grades_count);
  }
  EXPECT_EQ(before, grades_count - 1);
  before = 0;
  for (float p = 0; p <= 1; p += 0.01F) {
    EXPECT_GE(grade_of_probability(p), before);
    before = grade_of_probability(p);
    EXPECT_LT(before, grades_count);
  }
  EXPECT_EQ(grade_of_probability(1), grades_count - 1);
}

TEST(source, each_has_a_name_of_its_own) {
  for (const source a : all_sources) {
    EXPECT_NE(name_of(a), "?");
    for (const source b : all_sources) EXPECT_EQ(name_of(a) == name_of(b), a == b);
  }
  EXPECT_EQ(std::size(all_sources), static_cast<std::size_t>(source::last_));
}

TEST(draft_part, has_no_chance_above_one_whatever_a_peer_sends) {
  EXPECT_EQ((draft_part{source::lookup, 1, 0, 0xffff}).chance(), 1.0);
  EXPECT_EQ((draft_part{source::lookup, 1, 0, 0}).chance(), 0.0);
}

}  // namespace
}  // namespace redline::draft
