#include "runtime/model/pass_probe.hpp"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "tests/support/tiny_model.hpp"

namespace redline::model {
namespace {

std::unique_ptr<transformer> tiny(kernels::worker_team& team, std::uint32_t pages, std::uint32_t rows_max,
                                  const test::tiny_shape& shape = {}) {
  const kernels::kernel_table& table = *kernels::process_table().table;
  auto weights = load_weights(*test::make_tiny_model(shape).file(), table, team);
  if (!weights) throw std::runtime_error(weights.error().describe());
  auto t = transformer::create(*weights, table, team, {.pages_count = pages, .rows_max = rows_max});
  if (!t) throw std::runtime_error(t.error().describe());
  return std::move(*t);
}

TEST(pass_probe, measures_few_and_many_rows_with_and_without_a_context) {
  kernels::worker_team team(1);
  const auto t = tiny(team, 64, 512);
  const auto passes = measure_passes(*t, microseconds{60'000'000});
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> shapes;
  for (const measured_pass& p : passes) {
    EXPECT_GT(p.took.count(), 0) << p.rows;
    EXPECT_TRUE(shapes.insert({p.rows, p.logits, p.context}).second);
    EXPECT_EQ(p.experts, 0U);
  }
  EXPECT_TRUE(shapes.contains({1, 1, 0}));
  EXPECT_TRUE(shapes.contains({16, 16, 1024}));
  EXPECT_TRUE(shapes.contains({512, 1, 0}));
}

// Otherwise the cost of an expert could not be distinguished from that of a row.
TEST(pass_probe, of_a_mixture_measures_passes_of_as_many_rows_that_touch_more_experts_and_fewer) {
  kernels::worker_team team(1);
  const auto t = tiny(team, 64, 64, {.architecture = "qwen3moe", .experts = 16});
  std::set<std::uint64_t> of_sixteen_rows;
  for (const measured_pass& p : measure_passes(*t, microseconds{60'000'000})) {
    EXPECT_GE(p.experts, p.logits == 0 ? 2U : 4U);
    if (p.rows == 16 && p.context == 0) of_sixteen_rows.insert(p.experts);
  }
  ASSERT_EQ(of_sixteen_rows.size(), 2U);
  EXPECT_GT(*of_sixteen_rows.rbegin(), *of_sixteen_rows.begin() + 4);
}

TEST(pass_probe, stays_within_the_available_rows_and_pages) {
  kernels::worker_team team(1);
  const auto t = tiny(team, 3, 24);  // 96 tokens
  for (const measured_pass& p : measure_passes(*t, microseconds{60'000'000})) {
    EXPECT_LE(p.rows, 24U);
    EXPECT_LE(p.rows + p.context, 96U);
  }
}

TEST(pass_probe, stops_when_it_takes_too_long) {
  kernels::worker_team team(1);
  const auto t = tiny(team, 64, 512);
  const auto passes = measure_passes(*t, microseconds{0});
  EXPECT_GE(passes.size(), 1U);
  EXPECT_LE(passes.size(), 3U);
}

}  // namespace
}  // namespace redline::model
