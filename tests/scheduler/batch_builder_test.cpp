#include "scheduler/batch_builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/draft/acceptance_record.hpp"

namespace redline::scheduler {
namespace {

work_item item(std::uint64_t sequence, std::uint32_t computed, std::uint32_t pending, std::uint32_t draft = 0) {
  return {.sequence = {sequence},
          .facts = {.tenant = {1}},
          .computed_count = computed,
          .pending_count = pending,
          .draft_count = draft,
          .growth = {.room = (32 - computed % 32) % 32}};
}

batch_plan build(const std::vector<work_item>& items, const budget& limits, const cost::cost_model& cost = {}) {
  std::vector<item_index> order(items.size());
  std::iota(order.begin(), order.end(), item_index{0});
  return build_batch(items, order, limits, cost);
}

constexpr budget roomy{.rows_max = 512, .prompt_chunk_rows_max = 256, .free = kv::pages(1000)};

/// A model in which each row costs 100 us and nothing else counts.
cost::cost_model per_row() {
  cost::cost_model cost;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const cost::work_size size{1 + i % 50, (i * 7919) % 5000, (i * 104729) % 3000};
    cost.observe(size, microseconds{static_cast<std::int64_t>(size.rows * 100)});
  }
  return cost;
}

std::vector<work_item> decodes(std::uint64_t count) {
  std::vector<work_item> items;
  for (std::uint64_t s = 1; s <= count; ++s) items.push_back(item(s, 10, 1));
  return items;
}

TEST(batch_builder, drafts_no_more_than_a_sequences_memory_can_take_back) {
  auto bounded = item(1, 10, 1, 8);
  bounded.growth.drafts_max = 3;
  EXPECT_EQ(build({bounded}, roomy).runs.at(0).draft_count, 3u);
}

TEST(batch_builder, a_sequence_begins_only_with_all_kinds_of_memory_that_it_opens_with) {
  auto first = item(1, 0, 4), second = item(2, 0, 4);
  first.growth.opening[kv::kind::state_slot] = second.growth.opening[kv::kind::state_slot] = 1;
  budget one_slot = roomy;
  one_slot.free[kv::kind::state_slot] = 1;
  const auto plan = build({first, second}, one_slot);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.left.at(0).why, limit::memory);
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
  EXPECT_EQ(plan.size.pairs, 6u * 10 + 21 + 820);  // each row attends to all earlier rows and to itself
}

TEST(batch_builder, cuts_a_prompt_into_chunks_without_logits) {
  budget limits = roomy;
  limits.prompt_chunk_rows_max = 16;
  const auto plan = build({item(1, 0, 40, 7)}, limits);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].log_count, 16u);
  EXPECT_EQ(plan.runs[0].draft_count, 0u);
  EXPECT_FALSE(plan.runs[0].wants_logits);
  // The last chunk includes the draft.
  const auto last = build({item(1, 32, 8, 7)}, limits);
  EXPECT_EQ(last.runs[0].rows(), 15u);
  EXPECT_TRUE(last.runs[0].wants_logits);
}

TEST(batch_builder, gives_every_log_its_row_before_any_draft) {
  budget limits = roomy;
  limits.rows_max = 8;
  const auto plan = build({item(1, 10, 1, 4), item(2, 10, 1, 9), item(3, 10, 1)}, limits);
  ASSERT_EQ(plan.runs.size(), 3u);
  EXPECT_TRUE(plan.left.empty());
  EXPECT_EQ(plan.runs[0].draft_count + plan.runs[1].draft_count, 5u);  // drafts share the remaining rows
}

TEST(batch_builder, says_when_rows_ran_out) {
  budget limits = roomy;
  limits.rows_max = 2;
  const auto plan = build({item(1, 10, 1, 4), item(2, 10, 1, 9), item(3, 10, 1)}, limits);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.size.rows, 2u);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].sequence.value, 3u);
  EXPECT_EQ(plan.left[0].why, limit::rows);
}

TEST(batch_builder, says_when_pages_ran_out_and_tries_the_next) {
  budget limits = roomy;
  limits.free = kv::pages(0);
  // 1 is at the end of its last page; 2 has space in its page.
  const auto plan = build({item(1, 64, 1), item(2, 60, 1, 20)}, limits);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].sequence.value, 1u);
  EXPECT_EQ(plan.left[0].why, limit::memory);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].rows(), 4u);  // only up to the end of the page
  EXPECT_EQ(plan.runs[0].draft_count, 3u);
}

TEST(batch_builder, gives_out_each_page_once) {
  budget limits = roomy;
  limits.free = kv::pages(3);
  const auto plan = build({item(1, 0, 40), item(2, 0, 40), item(3, 0, 40)}, limits);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[0].rows(), 40u);  // two pages
  EXPECT_EQ(plan.runs[1].rows(), 32u);  // the third page
  EXPECT_FALSE(plan.runs[1].wants_logits);
  ASSERT_EQ(plan.left.size(), 1u);
  EXPECT_EQ(plan.left[0].why, limit::memory);
}

TEST(batch_builder, keeps_within_the_predicted_time) {
  budget limits = roomy;
  limits.time_max = microseconds{1050};
  const auto cost = per_row();
  const auto plan = build({item(1, 10, 1, 3), item(2, 10, 1, 30), item(3, 10, 1)}, limits, cost);
  ASSERT_EQ(plan.runs.size(), 3u);
  EXPECT_EQ(plan.size.rows, 10u);
  EXPECT_LE(plan.predicted, limits.time_max);
  auto many = decodes(40);
  for (work_item& each : many) each.draft_count = 3;
  const auto shorter = build(many, limits, cost);
  EXPECT_LE(shorter.predicted, limits.time_max);
  ASSERT_FALSE(shorter.left.empty());
  EXPECT_EQ(shorter.left[0].why, limit::time);
  for (const auto& r : shorter.runs) EXPECT_EQ(r.draft_count, 0u) << "others wait for their row";
}

TEST(batch_builder, takes_one_row_of_the_first_run_whatever_it_costs) {
  cost::cost_model per_pair;  // each attended token costs 1 us
  for (std::uint64_t i = 0; i < 200; ++i) {
    const cost::work_size size{1 + i % 50, (i * 7919) % 50'000, (i * 104729) % 3000};
    per_pair.observe(size, microseconds{static_cast<std::int64_t>(size.rows + size.pairs)});
  }
  budget limits = roomy;
  limits.time_max = microseconds{1};
  for (const std::uint32_t pending : {2U, 1U}) {  // prompts, then decodes
    const auto plan = build({item(1, 20'000, pending), item(2, 20'000, pending)}, limits, per_pair);
    ASSERT_FALSE(plan.runs.empty());
    EXPECT_EQ(plan.runs[0].rows(), 1u);
    EXPECT_EQ(plan.runs[0].wants_logits, pending == 1);
    ASSERT_FALSE(plan.left.empty());
    EXPECT_EQ(plan.left[0].why, limit::time);
  }
}

TEST(batch_builder, prompts_keep_the_time_limit_also_where_few_rows_take_long) {
  budget limits = roomy;
  limits.rows_min = 64;
  limits.time_max = microseconds{4000};  // time for forty rows
  auto items = decodes(16);
  for (std::uint64_t s = 17; s <= 20; ++s) items.push_back(item(s, 0, 450));
  const auto plan = build(items, limits, per_row());
  EXPECT_EQ(plan.size.rows, 40u);
  EXPECT_LE(plan.predicted, limits.time_max);
}

TEST(batch_builder, prompts_have_two_thirds_of_a_pass_where_one_row_takes_longer_than_the_limit) {
  cost::cost_model cost;  // 60 ms to read the weights, and 1 ms per row
  for (std::uint64_t i = 0; i < 200; ++i) {
    const cost::work_size size{1 + i % 50, (i * 7919) % 5000, (i * 104729) % 3000};
    cost.observe(size, microseconds{static_cast<std::int64_t>(60'000 + size.rows * 1000)});
  }
  const auto one_row = cost.predict({.rows = 1, .pairs = 1, .context = 1, .logits = 1});
  const auto plan = build({item(1, 10, 1), item(2, 0, 450)}, roomy, cost);
  EXPECT_GT(plan.predicted, roomy.time_max);
  EXPECT_GT(plan.predicted, one_row * 3 - microseconds{1500});
  EXPECT_LE(plan.predicted, one_row * 3);
}

TEST(batch_builder, a_quarter_of_a_pass_is_for_prompts) {
  const auto rows_of_prompt = [](const batch_plan& plan) {
    std::uint32_t rows = 0;
    for (const auto& r : plan.runs) rows += r.sequence.value == 100 ? r.rows() : 0;
    return rows;
  };
  auto items = decodes(64);
  items.push_back(item(100, 0, 450));
  budget limits = roomy;
  limits.rows_min = 64;
  limits.time_max = microseconds{2000};
  auto plan = build(items, limits, per_row());
  EXPECT_EQ(plan.size.rows, 64u + 21) << "decodes alone take longer than the limit";
  EXPECT_EQ(rows_of_prompt(plan), 21u);
  limits.rows_min = 1;
  plan = build(items, limits, per_row());
  EXPECT_EQ(plan.size.rows, 20u);
  EXPECT_EQ(rows_of_prompt(plan), 5u);
  limits = roomy;
  limits.rows_max = 16;
  plan = build(items, limits);
  EXPECT_EQ(plan.size.rows, 16u);
  EXPECT_EQ(rows_of_prompt(plan), 4u);
  limits.rows_max = 2;
  plan = build(items, limits);
  EXPECT_EQ(rows_of_prompt(plan), 0u) << "a quarter is less than a row";
  items.back().missed_count = 3;
  EXPECT_EQ(rows_of_prompt(build(items, limits)), 1u);
}

TEST(batch_builder, what_prompts_do_not_need_is_for_decodes) {
  auto items = decodes(30);
  items.push_back(item(100, 0, 2));
  budget limits = roomy;
  limits.rows_max = 16;
  EXPECT_EQ(build(items, limits).size.rows, 16u);
  EXPECT_EQ(build(items, limits).left.size(), 16u) << "each is left out once";
}

TEST(batch_builder, a_short_prompt_does_not_wait_for_a_long_one) {
  budget limits = roomy;
  limits.time_max = microseconds{6000};  // time for sixty rows
  const auto plan = build({item(1, 0, 30'000), item(2, 0, 300), item(3, 0, 20), item(4, 0, 16'000)}, limits, per_row());
  ASSERT_EQ(plan.runs.size(), 3u);
  EXPECT_EQ(plan.runs[0].sequence.value, 3u);
  EXPECT_EQ(plan.runs[0].rows(), 20u);
  EXPECT_EQ(plan.runs[1].sequence.value, 2u);
  EXPECT_EQ(plan.runs[1].rows(), 10u) << "half is left";
  EXPECT_EQ(plan.runs[2].sequence.value, 1u);
  EXPECT_EQ(plan.runs[2].rows(), 30u) << "for the first";
  const auto alike = build({item(1, 0, 300), item(2, 0, 200)}, limits, per_row());
  EXPECT_EQ(alike.runs.at(0).rows(), 60u) << "of two equal ones the first is completed first";
}

TEST(batch_builder, short_prompts_leave_the_first_its_pages) {
  budget limits = roomy;
  limits.free = kv::pages(9);
  const auto plan = build({item(1, 0, 1000), item(2, 0, 30), item(3, 0, 30)}, limits);
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[1].sequence.value, 1u);
  EXPECT_EQ(plan.runs[1].rows(), 256u);
}

/// Machines: the microseconds of a pass as a function of its rows.
double laptop(double rows) { return 22'000 + 3'400 * rows; }                  // two cores, limited by arithmetic
double server(double rows) { return 9'000 + 60 * std::max(0.0, rows - 48); }  // 64 cores: flat, then a slope
double accelerator(double rows) { return 12'000 + 2 * rows; }                 // flat
double stairs(double rows) { return 2'000 + 4'000 * std::ceil(rows / 16); }

cost::cost_model taught(double (*machine)(double)) {
  cost::cost_model cost;
  for (int round = 0; round < 8; ++round) {
    for (std::uint64_t rows = 1; rows <= 512; rows += 1 + rows / 8) {
      cost.observe({rows, rows * 100, 100},
                   microseconds{static_cast<std::int64_t>(machine(static_cast<double>(rows)))});
    }
  }
  return cost;
}

/// The segments of a 64-token draft, as the record estimates them after 200 such drafts.
std::vector<cost::draft_segment> of_chance(int right_in_ten) {
  const draft::graded_segment run{draft::source::lookup, 3, 64};
  draft::acceptance_record r;
  for (int i = 0; i < 200; ++i) {
    std::uint32_t accepted = 0;
    while (accepted < 64 && (i * 7 + static_cast<int>(accepted) * 3) % 10 < right_in_ten) ++accepted;
    r.learn({&run, 1}, accepted, accepted < 64);
  }
  std::vector<cost::draft_segment> chances;
  for (const auto& part : r.parts({&run, 1}, nullptr)) chances.push_back({part.count, part.chance()});
  return chances;
}

double chance_at(const std::vector<cost::draft_segment>& draft, std::uint32_t place) {
  for (const cost::draft_segment& s : draft) {
    if (place < s.count) return s.chance();
    place -= s.count;
  }
  return 1;
}

/// The tokens per microsecond that a plan is expected to give.
double rate_of(const std::vector<std::uint32_t>& widths,
               const std::vector<const std::vector<cost::draft_segment>*>& drafts, double (*machine)(double)) {
  double tokens = 0;
  double rows = 0;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    double chance = 1;
    tokens += 1;
    for (std::uint32_t d = 0; d < widths[i]; ++d) tokens += chance *= chance_at(*drafts[i], d);
    rows += 1 + widths[i];
  }
  return tokens / machine(rows);
}

TEST(batch_builder, chooses_widths_near_the_best_there_are) {
  const std::vector<std::vector<cost::draft_segment>> drafts{of_chance(9), of_chance(5), of_chance(0)};
  for (const auto machine : {laptop, server, accelerator, stairs}) {
    const cost::cost_model cost = taught(machine);
    for (const auto& users : {std::vector<std::size_t>{0}, {1}, {2}, {0, 1}, {0, 1, 2}}) {
      std::vector<work_item> items;
      std::vector<const std::vector<cost::draft_segment>*> theirs;
      for (const std::size_t u : users) {
        items.push_back(item(u + 1, 100, 1, 40));
        items.back().segments = *theirs.emplace_back(&drafts[u]);
      }
      budget limits = roomy;
      limits.time_max = microseconds{10'000'000};
      const auto plan = build(items, limits, cost);
      std::vector<std::uint32_t> widths;
      for (const auto& r : plan.runs) widths.push_back(r.draft_count);
      ASSERT_EQ(widths.size(), users.size());
      double best = 0;
      std::vector<std::uint32_t> tried(users.size(), 0);
      for (bool more = true; more;) {  // tries all combinations
        best = std::max(best, rate_of(tried, theirs, machine));
        more = false;
        for (std::size_t i = 0; i < tried.size() && !more; ++i) {
          more = tried[i] < 40;
          tried[i] = more ? tried[i] + 1 : 0;
        }
      }
      EXPECT_GT(rate_of(widths, theirs, machine), 0.93 * best) << "users " << users.size() << ", widths " << widths[0];
    }
  }
}

TEST(batch_builder, drafts_less_the_more_users_share_a_machine_bound_by_arithmetic) {
  const auto draft = of_chance(7);
  const cost::cost_model cost = taught(laptop);
  budget limits = roomy;
  limits.time_max = microseconds{10'000'000};
  std::uint32_t before = 100;
  for (const std::uint64_t users : {1, 8, 64}) {
    std::vector<work_item> items;
    for (std::uint64_t u = 0; u < users; ++u) {
      items.push_back(item(u + 1, 100, 1, 40));
      items.back().segments = draft;
    }
    const auto plan = build(items, limits, cost);
    ASSERT_EQ(plan.runs.size(), users);
    EXPECT_LE(plan.runs[0].draft_count, before) << users;
    before = plan.runs[0].draft_count;
  }
  EXPECT_LE(before, 3u);
}

TEST(batch_builder, takes_all_of_a_draft_while_it_knows_nothing_of_the_costs) {
  const auto draft = of_chance(1);
  std::vector<work_item> items{item(1, 100, 1, 40)};
  items[0].segments = draft;
  EXPECT_EQ(build(items, roomy).runs[0].draft_count, 40u);
}

TEST(batch_builder, does_not_let_a_prompt_make_drafts_look_cheap) {
  const auto draft = of_chance(5);
  const cost::cost_model cost = taught(laptop);
  budget limits = roomy;
  limits.time_max = microseconds{10'000'000};
  std::vector<work_item> alone{item(1, 100, 1, 40)};
  alone[0].segments = draft;
  std::vector<work_item> beside = alone;
  beside.push_back(item(2, 0, 300));
  EXPECT_EQ(build(alone, limits, cost).runs[0].draft_count, build(beside, limits, cost).runs[0].draft_count);
}

TEST(batch_builder, keeps_to_the_rows_of_logits_that_were_planned) {
  std::vector<work_item> items;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    items.push_back(
        {.sequence = {i}, .computed_count = 10, .pending_count = 1, .draft_count = 8, .growth = {.room = 100}});
  }
  const std::vector<item_index> order{0, 1, 2};
  const auto logits_of = [&](std::uint32_t most) {
    std::uint32_t rows = 0;
    for (const planned_run& r : build_batch(items, order, {.logits_max = most, .free = kv::pages(100)}, {}).runs) {
      rows += r.wants_logits ? 1 + r.draft_count : 0;
    }
    return rows;
  };
  EXPECT_EQ(logits_of(1000), 27u);
  EXPECT_EQ(logits_of(7), 7u) << "drafts are shortened";
  EXPECT_EQ(logits_of(2), 2u) << "a sequence waits";
}

TEST(batch_builder, plans_nothing_from_nothing) {
  const auto plan = build({}, roomy);
  EXPECT_TRUE(plan.runs.empty());
  EXPECT_TRUE(plan.left.empty());
  EXPECT_EQ(plan.size.rows, 0u);
}

work_item scored(std::uint64_t sequence, std::uint32_t computed, std::uint32_t pending, std::uint32_t draft) {
  auto one = item(sequence, computed, pending, draft);
  one.scores_draft = true;
  return one;
}

TEST(batch_builder, computes_the_tokens_of_a_scored_prompt_whatever_they_cost) {
  // A draft that costs more than it saves is cut, but a draft of prompt tokens must be computed.
  cost::cost_model cost;
  for (std::uint64_t i = 1; i < 200; ++i) {
    const cost::work_size size{1 + i % 50, (i * 7919) % 5000, (i * 104729) % 3000};
    cost.observe(size, microseconds{static_cast<std::int64_t>(size.rows * size.rows * 100)});
  }
  budget limits = roomy;
  limits.time_max = microseconds{200'000};
  const auto plan = build({scored(1, 10, 1, 30)}, limits, cost);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].draft_count, 30u);
  EXPECT_EQ(plan.size.rows, 31u);
  EXPECT_EQ(plan.size.logits, 31u);
}

TEST(batch_builder, gives_a_scored_prompt_no_more_than_a_chunk_has) {
  budget limits = roomy;
  limits.prompt_chunk_rows_max = 16;
  EXPECT_EQ(build({scored(1, 10, 1, 100)}, limits).runs.at(0).rows(), 16u);
  limits.prompt_chunk_rows_max = 256;
  limits.logits_max = 9;
  EXPECT_EQ(build({scored(1, 10, 1, 100)}, limits).runs.at(0).rows(), 9u);
  limits.logits_max = 1000;
  limits.time_max = microseconds{2050};
  const auto plan = build({scored(1, 10, 1, 100), item(2, 10, 1)}, limits, per_row());
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.size.rows, 20u);
  EXPECT_EQ(plan.runs[0].rows(), 19u);
}

TEST(batch_builder, a_scored_prompt_gets_on_by_a_token_or_says_what_it_lacks) {
  budget limits = roomy;
  limits.free = kv::pages(0);
  const auto full = build({scored(1, 31, 1, 10)}, limits);  // space for the log's last token and for no other
  EXPECT_TRUE(full.runs.empty());
  ASSERT_EQ(full.left.size(), 1u);
  EXPECT_EQ(full.left[0].why, limit::memory);
  // The same holds if the time is already over.
  limits = roomy;
  limits.time_max = microseconds{1};
  limits.rows_min = 1;
  const auto late = build({scored(1, 10, 1, 10)}, limits, per_row());
  ASSERT_EQ(late.runs.size(), 1u);
  EXPECT_GE(late.runs[0].draft_count, 1u);
  // Recomputed tokens may fill the pass to its last row.
  limits = roomy;
  limits.rows_max = 8;
  const auto again = build({scored(1, 0, 8, 10)}, limits);
  ASSERT_EQ(again.runs.size(), 1u);
  EXPECT_EQ(again.runs[0].log_count, 7u);
  EXPECT_FALSE(again.runs[0].wants_logits);
  EXPECT_EQ(again.runs[0].draft_count, 0u);
}

}  // namespace
}  // namespace redline::scheduler
