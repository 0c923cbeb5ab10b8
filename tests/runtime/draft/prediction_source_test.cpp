#include "runtime/draft/prediction_source.hpp"

#include <gtest/gtest.h>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

const tokens predicted = {40, 41, 42, 43, 44, 45, 46, 47};

/// A source at this position of the answer, after a prompt.
prediction_source source_at(const tokens& answer, const tokens& prediction = predicted, const tokens& prompt = {1, 2}) {
  prediction_source s(prediction);
  s.append(prompt, true);
  s.append(answer, false);
  while (s.catch_up(1000)) {
  }
  return s;
}

TEST(prediction_source, drafts_from_the_place_that_the_answer_has_reached) {
  const auto s = source_at({40, 41, 42});
  const graded_draft d = s.look({}, 3);
  EXPECT_EQ(d.tokens, (tokens{43, 44, 45}));
  ASSERT_EQ(d.runs.size(), 1u);
  EXPECT_EQ(d.runs[0].from, source::prediction);
  EXPECT_EQ(d.runs[0].grade, grade_of_match(edit_cursor::agreed_from_start));
  EXPECT_EQ(s.stands(), standing::text);
  EXPECT_EQ(source_at({40, 99, 42}).look({}, 2).tokens, (tokens{43, 44})) << "it continues after a change";
}

TEST(prediction_source, is_trusted_from_the_first_token_until_the_answer_leaves_the_text) {
  EXPECT_EQ(source_at({}).look({}, 3).runs.at(0).grade, grade_of_match(edit_cursor::agreed_from_start));
  EXPECT_EQ(source_at({40, 99, 42, 43}).look({}, 3).runs.at(0).grade, grade_of_match(2));
  EXPECT_EQ(source_at({98, 99}).look({}, 3).runs.at(0).grade, grade_of_match(0));
}

TEST(prediction_source, names_the_format_where_the_expectation_comes_from_it) {
  prediction_source s(predicted, source::format);
  EXPECT_FALSE(s.catch_up(1000));
  EXPECT_EQ(s.look({}, 3).runs.at(0).from, source::format);
}

TEST(prediction_source, reads_the_answer_and_not_the_prompt) {
  EXPECT_EQ(source_at({}, predicted, {44, 45}).look({}, 2).tokens, (tokens{40, 41}));
}

TEST(prediction_source, looks_after_what_is_pending_and_stays_where_it_is) {
  const auto s = source_at({40, 41});
  EXPECT_EQ(s.look(tokens{42, 43}, 2).tokens, (tokens{44, 45}));
  EXPECT_EQ(s.look(tokens{45, 46}, 2).tokens, (tokens{47}));
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{42, 43}));
}

TEST(prediction_source, says_nothing_at_its_end_and_where_it_is_lost) {
  EXPECT_TRUE(source_at(predicted).look({}, 5).tokens.empty());
  EXPECT_TRUE(source_at({40, 1, 2, 3, 4, 5, 6}).look({}, 5).tokens.empty());
  EXPECT_TRUE(source_at({}, {}).look({}, 5).tokens.empty()) << "an empty prediction";
  EXPECT_TRUE(source_at({40}).look({}, 0).tokens.empty());
}

TEST(prediction_source, finds_nothing_until_it_is_indexed) {
  prediction_source s(predicted);
  s.append(tokens{1, 2}, true);
  s.append(tokens{40, 41}, false);
  EXPECT_TRUE(s.catch_up(5));
  EXPECT_TRUE(s.look({}, 2).tokens.empty());
  s.append(tokens{42}, false);
  EXPECT_FALSE(s.catch_up(3));
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{43, 44})) << "tokens that came meanwhile are not lost";
  s.append(tokens{43}, false);
  EXPECT_TRUE(s.look({}, 2).tokens.empty());
  EXPECT_FALSE(s.catch_up(1));
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{44, 45}));
}

TEST(prediction_source, keeps_its_place_when_the_log_loses_tokens) {
  auto s = source_at({40, 41, 42});
  s.drop(1, 3);
  EXPECT_FALSE(s.catch_up(10));
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{43, 44}));
}

}  // namespace
}  // namespace redline::draft
