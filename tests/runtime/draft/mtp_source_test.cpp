#include "runtime/draft/mtp_source.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

/// A source whose log has these tokens, with a draft of 10, 11, 12 after the first three.
mtp_source source_after(const tokens& log) {
  mtp_source s;
  s.append(tokens{1, 2}, true);
  s.hear(3, {.tokens = {10, 11, 12}, .grades = {6, 4, 4}, .rows = 4, .row_us = 1});
  s.append(log, false);
  return s;
}

TEST(mtp_source, drafts_after_the_tokens_that_it_was_asked_about) {
  const graded_draft d = source_after({3}).look({}, 8);
  EXPECT_EQ(d.tokens, (tokens{10, 11, 12}));
  ASSERT_EQ(d.runs.size(), 2u);
  EXPECT_EQ(d.runs[0].from, source::mtp);
  EXPECT_EQ(d.runs[0].grade, 6);
  EXPECT_EQ(d.runs[1].grade, 4);
  EXPECT_EQ(source_after({3}).look({}, 2).tokens, (tokens{10, 11}));
  EXPECT_EQ(source_after({3}).stands(), standing::text);
}

TEST(mtp_source, goes_on_while_the_log_agrees) {
  EXPECT_EQ(source_after({3, 10}).look({}, 8).tokens, (tokens{11, 12}));
  EXPECT_EQ(source_after({3}).look(tokens{10, 11}, 8).tokens, (tokens{12}));
  EXPECT_TRUE(source_after({3}).look(tokens{11}, 8).tokens.empty());
  EXPECT_TRUE(source_after({3, 9}).look({}, 8).tokens.empty()) << "the log went another way";
  EXPECT_TRUE(source_after({3, 10, 11, 12}).look({}, 8).tokens.empty());
  EXPECT_TRUE(source_after({3, 10, 11, 12, 13}).look({}, 8).tokens.empty());
}

TEST(mtp_source, says_nothing_before_the_log_has_these_tokens_or_after_it_lost_some) {
  mtp_source s = source_after({});
  EXPECT_TRUE(s.look({}, 8).tokens.empty());
  s.append(tokens{3}, false);
  EXPECT_EQ(s.look({}, 8).tokens.size(), 3u);
  s.drop(0, 1);
  EXPECT_TRUE(s.look({}, 8).tokens.empty());
  s.hear(3, {.tokens = {7}, .grades = {}, .rows = 4, .row_us = 1});
  EXPECT_TRUE(s.look({}, 8).tokens.empty());
  s.append(tokens{4}, false);
  EXPECT_EQ(s.look({}, 8).tokens, (tokens{7})) << "positions count from what is left";
}

TEST(mtp_source, takes_no_more_and_no_better_than_there_can_be) {
  mtp_source s;
  s.hear(0, {.tokens = tokens(1000, 5), .grades = std::vector<std::uint8_t>(1000, 255), .rows = 4, .row_us = 1});
  const graded_draft d = s.look({}, 5000);
  EXPECT_EQ(d.tokens.size(), mtp_tokens_max);
  EXPECT_EQ(d.runs.at(0).grade, grades_count - 1);
}

// The length with the most tokens per time, as trying all lengths finds it, if probabilities do not rise.
TEST(mtp_length, ends_where_a_token_adds_less_than_the_round_has) {
  for (const double cost : {0.02, 0.1, 0.3, 0.7}) {
    for (const double right : {0.3, 0.6, 0.8, 0.95}) {
      mtp_length length(cost);
      int found = 0;
      while (found < 100 && length.may_grow() && length.add(right)) ++found;
      int best = 0;
      double rate = 1, expected = 1;
      for (int i = 1; i <= 100; ++i) {
        expected += std::pow(right, i);
        if (expected / (1 + i * cost) >= rate) {
          rate = expected / (1 + i * cost);
          best = i;
        }
      }
      EXPECT_EQ(found, best) << cost << " " << right;
    }
  }
}

TEST(mtp_length, of_odd_numbers_is_finite) {
  mtp_length none(std::numeric_limits<double>::quiet_NaN());
  EXPECT_FALSE(none.add(1));
  EXPECT_FALSE(none.may_grow());
  EXPECT_FALSE(mtp_length(0.1).add(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace redline::draft
