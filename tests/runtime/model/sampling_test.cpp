#include "runtime/model/sampling.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace redline::model {
namespace {

const token_context nothing_before{};

TEST(sampling, greedy_takes_the_first_of_the_best_and_ignores_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(sample(std::vector<float>{nan, 1, 3, 3, 2}, {}, nothing_before), 2);
  EXPECT_EQ(sample(std::vector<float>{nan, nan}, {}, nothing_before), 0);
}

TEST(sampling, frequencies_follow_the_softmax) {
  const std::vector<float> logits{1.0F, 0.0F, -1.0F, 2.0F};
  const sampling_params p{.temperature = 0.7F, .seed = 99};
  double total = 0;
  std::vector<double> expected;
  for (const float l : logits) total += std::exp(l / 0.7);
  for (const float l : logits) expected.push_back(std::exp(l / 0.7) / total);
  constexpr int draws = 20000;
  std::vector<int> seen(4);
  for (std::uint32_t i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(sample(logits, p, {.count = i}))];
  double chi_square = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double e = expected[i] * draws;
    chi_square += (seen[i] - e) * (seen[i] - e) / e;
  }
  EXPECT_LT(chi_square, 16.3);  // 3 degrees of freedom, 0.1 %
}

TEST(sampling, pruning_does_not_change_the_draw) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 8);
  for (std::uint32_t i = 0; i < 500; ++i) {
    std::vector<float> logits(300);
    for (auto& l : logits) l = normal(random);
    const sampling_params pruned{.temperature = 1, .seed = i};
    const sampling_params whole{.temperature = 1, .top_k = 300, .top_p = 1, .min_p = 1e-30F, .seed = i};
    ASSERT_EQ(sample(logits, pruned, {.count = i}), sample(logits, whole, {.count = i}));
  }
}

TEST(sampling, truncations_keep_only_what_they_allow) {
  const std::vector<float> logits{0, 3, 3, 2, -5};
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(sample(logits, {.temperature = 5, .top_k = 1}, {.count = i}), 1) << "ties go to the lower id";
    EXPECT_EQ(sample(logits, {.temperature = 5, .top_p = 0}, {.count = i}), 1);
    EXPECT_NE(sample(logits, {.temperature = 5, .top_k = 3}, {.count = i}), 0);
    const token t = sample(logits, {.temperature = 1, .min_p = 0.9F}, {.count = i});
    EXPECT_TRUE(t == 1 || t == 2);
  }
  EXPECT_EQ(sample(logits, {.temperature = 1e-30F, .top_k = 1000}, nothing_before), 1);
}

TEST(sampling, penalties_and_bans_look_at_the_right_tokens) {
  const std::vector<float> logits{2, 1.9F, 1.8F};
  const std::vector<token> log{0, 1};
  const token_context before{log, 2, 1};  // token 0 is the prompt, token 1 the output
  EXPECT_EQ(sample(logits, {.presence_penalty = 1}, before), 0) << "the prompt is not penalised";
  EXPECT_EQ(sample(logits, {.repetition_penalty = 2}, before), 2) << "here it is";
  EXPECT_EQ(sample(logits, {.presence_penalty = 1}, before, std::vector<token>{0}), 2);
  EXPECT_EQ(sample(logits, {.logit_bias = {{2, 5}, {-1, 100}, {99, 100}}}, before), 2);
  const sampling_params banned{.banned_early = {0}, .banned_before = 4};
  EXPECT_EQ(sample(logits, banned, before), 1);
  EXPECT_EQ(sample(logits, banned, before, std::vector<token>{1, 1}), 0);
}

TEST(sampling, log_probabilities_are_those_of_the_model) {
  const std::vector<float> logits{0, std::log(3.0F), 0};
  const auto got = logprob_of(logits, 0, 2);
  EXPECT_NEAR(got.logprob, std::log(0.2), 1e-6);
  ASSERT_EQ(got.top.size(), 2u);
  EXPECT_EQ(got.top[0].id, 1);
  EXPECT_NEAR(got.top[0].logprob, std::log(0.6), 1e-6);
  EXPECT_EQ(got.top[1].id, 0);
  EXPECT_NEAR(top_probability(logits), 0.6, 1e-6);
}

}  // namespace
}  // namespace redline::model
