#include "runtime/model/expert_choice.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "kernels/dispatch.hpp"

namespace redline::model {
namespace {

std::vector<expert_share> choose(std::vector<float> logits, std::size_t used, bool normalises) {
  std::vector<expert_share> chosen(used);
  choose_experts(*kernels::choose_table("scalar").table, logits, {.normalises = normalises}, chosen);
  return chosen;
}

TEST(expert_choice, takes_the_most_probable_ones_in_order) {
  const auto chosen = choose({0, std::log(4.0F), std::log(2.0F), 0}, 2, false);
  EXPECT_EQ(chosen[0].expert, 1U);
  EXPECT_EQ(chosen[1].expert, 2U);
  EXPECT_NEAR(chosen[0].weight, 0.5, 1e-6);
  EXPECT_NEAR(chosen[1].weight, 0.25, 1e-6);
}

TEST(expert_choice, weights_sum_to_one_where_they_are_normalised) {
  const auto chosen = choose({0, std::log(4.0F), std::log(2.0F), 0}, 2, true);
  EXPECT_NEAR(chosen[0].weight, 2.0 / 3, 1e-6);
  EXPECT_NEAR(chosen[1].weight, 1.0 / 3, 1e-6);
}

TEST(expert_choice, weights_are_scaled_after_they_are_normalised) {
  std::vector<float> logits{0, std::log(4.0F), std::log(2.0F), 0};
  std::vector<expert_share> chosen(2);
  choose_experts(*kernels::choose_table("scalar").table, logits, {.normalises = true, .scale = 3}, chosen);
  EXPECT_NEAR(chosen[0].weight, 2, 1e-6);
  EXPECT_NEAR(chosen[1].weight, 1, 1e-6);
}

TEST(expert_choice, sigmoids_choose_with_a_bias_that_no_weight_has) {
  std::vector<float> logits{0, std::log(3.0F), std::log(3.0F), -2};
  const std::vector<float> bias{0, 0, 0.1F, 0.9F};
  std::vector<expert_share> chosen(2);
  const auto& table = *kernels::choose_table("scalar").table;
  expert_weighting how{.gates = architecture::gating::sigmoid, .selection_bias = bias};
  choose_experts(table, logits, how, chosen);
  EXPECT_EQ(chosen[0].expert, 3U);
  EXPECT_NEAR(chosen[0].weight, 1 / (1 + std::exp(2)), 1e-6);
  EXPECT_EQ(chosen[1].expert, 2U);
  EXPECT_NEAR(chosen[1].weight, 0.75, 1e-6);
  logits = {-200, -200, -200, -200};
  how.normalises = true;
  choose_experts(table, logits, how, chosen);
  EXPECT_NEAR(chosen[0].weight, 0, 1e-9) << "finite, even if all are zero";
}

TEST(expert_choice, groups_whose_two_best_have_the_greatest_sum_are_chosen_from) {
  const auto& table = *kernels::choose_table("scalar").table;
  const expert_weighting how{.gates = architecture::gating::sigmoid, .groups = 3, .groups_used = 2};
  std::vector<float> logits{5, -5, -5, 2, 2, 1, 1, 1, 4};  // sums of two: 0.99 + 0.01, 0.88 + 0.88, 0.98 + 0.73
  std::vector<expert_share> chosen(4);
  choose_experts(table, logits, how, chosen);
  std::vector<std::uint32_t> experts;
  for (const expert_share& share : chosen) experts.push_back(share.expert);
  EXPECT_EQ(experts, (std::vector<std::uint32_t>{8, 3, 4, 5})) << "the best expert of all is in none of them";
  const float nan = std::numeric_limits<float>::quiet_NaN();
  logits.assign(9, nan);
  choose_experts(table, logits, how, chosen);
  for (const expert_share& share : chosen) EXPECT_LT(share.expert, 9U);
}

TEST(expert_choice, the_first_of_equal_ones_is_taken) {
  const auto chosen = choose({1, 3, 3, 3, 1}, 4, true);
  EXPECT_EQ(chosen[0].expert, 1U);
  EXPECT_EQ(chosen[1].expert, 2U);
  EXPECT_EQ(chosen[2].expert, 3U);
  EXPECT_EQ(chosen[3].expert, 0U);
}

// A NaN row goes to distinct experts and stays NaN, which the logits show.
TEST(expert_choice, logits_that_are_no_numbers_choose_different_experts_and_are_seen) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits :
       {std::vector<float>{nan, nan, nan, nan}, {1, nan, 2, 0}, {inf, inf, 0, 0}, {-inf, -inf, -inf, -inf}}) {
    for (std::size_t used = 1; used <= logits.size(); ++used) {
      std::set<std::uint32_t> experts;
      for (const expert_share& share : choose(logits, used, true)) {
        EXPECT_LT(share.expert, logits.size());
        experts.insert(share.expert);
      }
      EXPECT_EQ(experts.size(), used);
    }
  }
  EXPECT_TRUE(std::isnan(choose({nan, nan}, 1, true)[0].weight));
}

}  // namespace
}  // namespace redline::model
