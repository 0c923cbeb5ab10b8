#include "bench/studies/common/answer_replay.hpp"

#include <gtest/gtest.h>

namespace redline::studies {
namespace {

TEST(answer_replay, knows_the_rest_of_an_answer_and_repeats_its_end) {
  answer_replay r;
  EXPECT_FALSE(r.choose({.answer = 1, .index = 0, .drafted = {}}));
  r.replay({1}, {7, 8, 9});
  for (const auto& [index, wanted] : {std::pair{0U, 7}, {1U, 8}, {2U, 9}, {50U, 9}}) {
    EXPECT_EQ(r.choose({.answer = 1, .index = index, .drafted = {}}), wanted);
  }
  EXPECT_FALSE(r.choose({.answer = 2, .index = 0, .drafted = {}}));
}

TEST(answer_replay, forgets_what_is_finished) {
  answer_replay r;
  r.replay({1}, {7});
  r.note_verified(1, 4, 2);
  r.note_verified(2, 1, 1);
  r.note_verified(1, 0, 0);
  EXPECT_EQ(r.finish({1}), (std::vector<answer_replay::step>{{4, 2}, {0, 0}}));
  EXPECT_TRUE(r.finish({1}).empty());
  EXPECT_FALSE(r.choose({.answer = 1, .index = 0, .drafted = {}}));
  EXPECT_EQ(r.finish({2}).size(), 1u);
}

TEST(answer_replay, drafts_as_an_mtp_layer_that_is_right_as_often_as_it_was_told) {
  answer_replay r;
  const std::vector<token> known(1000, 7);
  r.replay({1}, known);
  EXPECT_FALSE(r.draft({.answer = 1, .index = 0, .drafted = {}})) << "the model's own layer drafts";
  EXPECT_FLOAT_EQ(r.confidence(1, 0.9F), 0.9F);
  r.simulate_mtp(0.75);
  EXPECT_FLOAT_EQ(r.confidence(1, 0.9F), 0.75F);
  EXPECT_FALSE(r.draft({.answer = 2, .index = 0, .drafted = {}}));
  int right = 0;
  for (std::uint64_t i = 0; i < known.size(); ++i)
    right += r.draft({.answer = 1, .index = i, .drafted = {}}) == token{7} ? 1 : 0;
  EXPECT_NEAR(right, 750, 60);
}

TEST(draft_replay, is_right_as_often_as_it_was_told_and_agrees_with_what_is_right) {
  const auto answers = std::make_shared<answer_replay>();
  std::vector<token> answer;
  for (token t = 0; t < 2000; ++t) answer.push_back(t % 300);
  answers->replay({1}, answer);
  const draft_replay d(answers, 0.7);
  EXPECT_FALSE(d.choose({.answer = 2, .index = 0, .drafted = {}})) << "nothing is replayed";
  int right = 0;
  for (std::uint64_t i = 0; i < answer.size(); ++i) {
    const auto own = d.choose({.answer = 1, .index = i, .drafted = {}});
    EXPECT_EQ(d.choose({.answer = 1, .index = i, .drafted = {}}), own) << "the same for a second request";
    EXPECT_EQ(d.choose({.answer = 1, .index = i, .drafted = answer[i]}), answer[i]);
    EXPECT_EQ(d.choose({.answer = 1, .index = i, .drafted = answer[i] + 1}), own);
    right += own == answer[i] ? 1 : 0;
  }
  EXPECT_NEAR(right, 1400, 80);
}

}  // namespace
}  // namespace redline::studies
