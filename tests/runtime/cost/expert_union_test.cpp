#include "runtime/cost/expert_union.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace redline::cost {
namespace {

constexpr mixture_shape coder_shape{.layers = 48, .experts = 128, .used = 8};  // Qwen3-Coder-30B-A3B

/// The distinct experts that rows touch in all layers. Each row of a layer chooses for itself, but some experts are
/// preferred to others, by factors of about e^skew.
std::uint64_t choose(std::mt19937_64& chance, std::uint32_t rows, double skew) {
  std::uint64_t touched = 0;
  std::normal_distribution<double> liking(0, skew);
  std::exponential_distribution<double> waiting(1);
  for (std::uint32_t layer = 0; layer < coder_shape.layers; ++layer) {
    std::vector<double> liked(coder_shape.experts);
    for (double& one : liked) one = skew == 0 ? 1 : std::exp(liking(chance));
    std::set<std::size_t> chosen;
    for (std::uint32_t row = 0; row < rows; ++row) {
      std::vector<std::pair<double, std::size_t>> first;  // the experts that come first are chosen
      for (std::size_t e = 0; e < coder_shape.experts; ++e) first.emplace_back(waiting(chance) / liked[e], e);
      std::partial_sort(first.begin(), first.begin() + coder_shape.used, first.end());
      for (std::size_t i = 0; i < coder_shape.used; ++i) chosen.insert(first[i].second);
    }
    touched += chosen.size();
  }
  return touched;
}

double off(const expert_union& u, std::mt19937_64& chance, std::uint32_t rows, double skew) {
  const auto found = static_cast<double>(choose(chance, rows, skew));
  return std::abs(u.predict(rows, rows) - found) / found;
}

TEST(expert_union, one_row_touches_what_it_uses) {
  EXPECT_DOUBLE_EQ(expert_union(coder_shape).predict(1, 1), 48.0 * 8);
  EXPECT_EQ(expert_union(coder_shape).predict(0, 0), 0);
  EXPECT_EQ(expert_union({.layers = 2, .experts = 4, .used = 4}).predict(3, 3), 8) << "all of them";
}

TEST(expert_union, takes_rows_for_independent_before_it_has_seen_a_text) {
  std::mt19937_64 chance(1);
  const expert_union u(coder_shape);
  for (const std::uint32_t rows : {2U, 8U, 32U, 128U}) EXPECT_LT(off(u, chance, rows, 0), 0.02) << rows;
}

TEST(expert_union, learns_from_passes_of_a_few_rows_what_those_of_many_touch) {
  for (const double skew : {0.5, 1.0, 1.5, 2.0}) {
    std::mt19937_64 chance(2);
    expert_union u(coder_shape);
    const expert_union independent(coder_shape);
    for (int i = 0; i < 20; ++i) u.observe(8, 8, choose(chance, 8, skew));
    for (const std::uint32_t rows : {2U, 4U, 8U, 16U, 64U}) {
      EXPECT_LT(off(u, chance, rows, skew), rows > 16 ? 0.25 : 0.12) << skew << ", " << rows;
    }
    if (skew >= 1.5) {
      EXPECT_GT(off(independent, chance, 16, skew), 0.5) << skew;
    }
  }
}

TEST(expert_union, follows_another_text) {
  std::mt19937_64 chance(3);
  expert_union u(coder_shape);
  for (int i = 0; i < 50; ++i) u.observe(8, 8, choose(chance, 8, 2));
  ASSERT_LT(u.growth(), 0.75);
  for (int i = 0; i < 20; ++i) u.observe(8, 8, choose(chance, 8, 0));
  EXPECT_GT(u.growth(), 0.9);
}

TEST(expert_union, the_last_layer_has_only_the_rows_that_want_logits) {
  const expert_union u({.layers = 2, .experts = 128, .used = 8});
  EXPECT_DOUBLE_EQ(u.predict(64, 1), u.predict(64, 64) / 2 + 8);
  EXPECT_DOUBLE_EQ(u.predict(64, 0), u.predict(64, 64) / 2);
}

TEST(expert_union, learns_nothing_from_passes_that_touch_everything_or_cannot_be) {
  expert_union u(coder_shape);
  for (const std::uint64_t touched : {std::uint64_t{0}, coder_shape.all() + 1, ~std::uint64_t{0}})
    u.observe(8, 8, touched);
  u.observe(1, 1, 48 * 8);
  EXPECT_EQ(u.growth(), 1);
  for (int i = 0; i < 100; ++i) u.observe(100'000, 100'000, coder_shape.all());
  EXPECT_EQ(u.growth(), 1);
}

TEST(expert_union, of_a_dense_model_there_is_none) {
  expert_union u;
  u.observe(8, 8, 5);
  EXPECT_EQ(u.predict(8, 8), 0);
  EXPECT_EQ(u.growth(), 1);
}

}  // namespace
}  // namespace redline::cost
