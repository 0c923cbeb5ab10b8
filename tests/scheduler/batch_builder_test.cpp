#include "scheduler/batch_builder.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace redline::scheduler {
namespace {

work_item item(std::uint64_t sequence, std::uint32_t computed, std::uint32_t pending, std::uint32_t draft = 0) {
  return {{sequence}, {1}, instant{}, computed, pending, draft};
}

batch_plan build(const std::vector<work_item>& items, const budget& limits, const cost_model& cost = {}) {
  std::vector<item_index> order(items.size());
  std::iota(order.begin(), order.end(), item_index{0});
  return build_batch(items, order, limits, cost);
}

constexpr budget roomy{.rows_max = 512, .prompt_chunk_rows_max = 256, .pages_free = 1000, .page_tokens = 32};

/// 100 us per row, nothing else.
cost_model per_row() {
  cost_model cost;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const work_size size{1 + i % 50, (i * 7919) % 5000};
    cost.observe(size, microseconds{static_cast<std::int64_t>(size.rows * 100)});
  }
  return cost;
}

TEST(batch_builder, takes_everything_that_fits_in_the_order_given) {
  const auto plan = build({item(1, 10, 1, 5), item(2, 0, 40)}, roomy);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_TRUE(plan.left.empty());
  EXPECT_EQ(plan.runs[0].sequence.value, 1u);
  EXPECT_EQ(plan.runs[0].first, 10u);
  EXPECT_EQ(plan.runs[0].log_count, 1u);
  EXPECT_EQ(plan.runs[0].draft_count, 5u);
  EXPECT_TRUE(plan.runs[0].wants_logits);
  EXPECT_EQ(plan.runs[1].rows(), 40u);
  EXPECT_EQ(plan.size.rows, 46u);
  EXPECT_EQ(plan.size.pairs, 6u * 10 + 21 + 820);  // each row attends to all before it and to itself
}

TEST(batch_builder, cuts_a_prompt_into_chunks_without_logits) {
  budget limits = roomy;
  limits.prompt_chunk_rows_max = 16;
  const auto plan = build({item(1, 0, 40, 7)}, limits);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].log_count, 16u);
  EXPECT_EQ(plan.runs[0].draft_count, 0u);
  EXPECT_FALSE(plan.runs[0].wants_logits);
  // The last chunk brings the draft along.
  const auto last = build({item(1, 32, 8, 7)}, limits);
  EXPECT_EQ(last.runs[0].rows(), 15u);
  EXPECT_TRUE(last.runs[0].wants_logits);
}

TEST(batch_builder, says_when_rows_ran_out) {
  budget limits = roomy;
  limits.rows_max = 8;
  const auto plan = build({item(1, 10, 1, 4), item(2, 10, 1, 9), item(3, 10, 1)}, limits);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[1].draft_count, 2u);  // the draft is shortened to the rows left
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].sequence.value, 3u);
  EXPECT_EQ(plan.left[0].why, limit::rows);
}

TEST(batch_builder, says_when_pages_ran_out_and_tries_the_next) {
  budget limits = roomy;
  limits.pages_free = 0;
  // 1 stands at the end of its last page, 2 has room in it.
  const auto plan = build({item(1, 64, 1), item(2, 60, 1, 20)}, limits);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].sequence.value, 1u);
  EXPECT_EQ(plan.left[0].why, limit::pages);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].rows(), 4u);  // to the end of the page, no further
  EXPECT_EQ(plan.runs[0].draft_count, 3u);
}

TEST(batch_builder, gives_out_each_page_once) {
  budget limits = roomy;
  limits.pages_free = 3;
  const auto plan = build({item(1, 0, 40), item(2, 0, 40), item(3, 0, 40)}, limits);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].rows(), 40u);  // two pages
  EXPECT_EQ(plan.runs[1].rows(), 32u);  // the third
  EXPECT_FALSE(plan.runs[1].wants_logits);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].why, limit::pages);
}

TEST(batch_builder, keeps_within_the_predicted_time) {
  budget limits = roomy;
  limits.time_max = microseconds{1050};
  const auto cost = per_row();
  const auto plan = build({item(1, 10, 1, 3), item(2, 10, 1, 30), item(3, 10, 1)}, limits, cost);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].rows(), 4u);
  EXPECT_EQ(plan.runs[1].rows(), 6u);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].why, limit::time);
  EXPECT_LE(plan.predicted, limits.time_max);
}

TEST(batch_builder, takes_one_row_of_the_first_run_whatever_it_costs) {
  budget limits = roomy;
  limits.time_max = microseconds{1};
  const auto plan = build({item(1, 10, 1, 30), item(2, 10, 1)}, limits, per_row());
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].rows(), 1u);
  EXPECT_TRUE(plan.runs[0].wants_logits);
}

TEST(batch_builder, plans_nothing_from_nothing) {
  const auto plan = build({}, roomy);
  EXPECT_TRUE(plan.runs.empty());
  EXPECT_TRUE(plan.left.empty());
  EXPECT_EQ(plan.size.rows, 0u);
}

}  // namespace
}  // namespace redline::scheduler
