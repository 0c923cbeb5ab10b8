#include "actors/serving/target_probe.hpp"

#include <gtest/gtest.h>

namespace redline::actors {
namespace {

TEST(target_probe, knows_the_rest_of_an_answer_and_repeats_its_end) {
  target_probe probe;
  EXPECT_TRUE(probe.known({1}, 0, 3).empty());
  probe.replay({1}, {7, 8, 9});
  EXPECT_EQ(probe.known({1}, 0, 2), (std::vector<token>{7, 8}));
  EXPECT_EQ(probe.known({1}, 2, 3), (std::vector<token>{9, 9, 9}));
  EXPECT_EQ(probe.known({1}, 50, 1), (std::vector<token>{9}));
  EXPECT_TRUE(probe.known({2}, 0, 3).empty());
}

TEST(target_probe, forgets_what_is_finished) {
  target_probe probe;
  probe.replay({1}, {7});
  probe.note({1}, {4, 2});
  probe.note({2}, {1, 1});
  probe.note({1}, {0, 0});
  EXPECT_EQ(probe.finish({1}), (std::vector<target_probe::step>{{4, 2}, {0, 0}}));
  EXPECT_TRUE(probe.finish({1}).empty());
  EXPECT_TRUE(probe.known({1}, 0, 1).empty());
  EXPECT_EQ(probe.finish({2}).size(), 1u);
}

TEST(target_probe, chooses_for_a_draft_model_that_is_right_as_often_as_it_was_told) {
  target_probe probe;
  std::vector<token> answer;
  for (token t = 0; t < 4000; ++t) answer.push_back(2 + t);
  probe.replay({1}, answer);
  EXPECT_TRUE(probe.draft_choices({1}, 0, {}).empty()) << "drafts are the model's own";
  probe.replay_drafts(0.7);
  EXPECT_TRUE(probe.draft_choices({2}, 0, {}).empty()) << "nothing is replayed";
  int right = 0;
  for (std::uint32_t i = 0; i < 4000; ++i) {
    const auto own = probe.draft_choices({1}, i, {});
    ASSERT_EQ(own.size(), 1u);
    right += own[0] == answer[i] ? 1 : 0;
    EXPECT_EQ(probe.draft_choices({1}, i, {}), own) << "the same when asked again";
  }
  EXPECT_NEAR(right, 2800, 120);
  // What is looked up and right is agreed to; what is wrong is not.
  const std::vector<token> guess = {answer[10], answer[11], 1};
  const auto choices = probe.draft_choices({1}, 10, guess);
  ASSERT_EQ(choices.size(), 4u);
  EXPECT_EQ(choices[0], answer[10]);
  EXPECT_EQ(choices[1], answer[11]);
  EXPECT_NE(choices[2], 1) << "wrong for its own reasons";
}

}  // namespace
}  // namespace redline::actors
