#include "scheduler/run_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/scheduler/times.hpp"

namespace redline::scheduler {
namespace {

constexpr queue_limits small{.running_max = 2, .waiting_max = 1, .tokens_max = 200, .memory = kv::pages(8)};
constexpr budget roomy_budget{.rows_max = 512, .prompt_chunk_rows_max = 256, .free = kv::pages(4000)};
constexpr budget full{.rows_max = 512, .prompt_chunk_rows_max = 256, .free = kv::pages(0)};

run_queue make(const queue_limits& limits = small, const char* policy = "fifo") {
  return run_queue(limits, *make_policy(policy));
}

struct round_spec {
  std::uint64_t sequence = 1;
  std::uint64_t tenant = 1;
  std::uint64_t round = 1;
  std::uint32_t from = 0;
  std::vector<token> tail{1, 2, 3};
  std::vector<token> draft;
  std::vector<cost::draft_segment> segments{};
  std::uint32_t tokens_max = 100;
  std::vector<log_splice> splices{};
  bool prefill_only = false;
};

submitted offer(run_queue& q, const round_spec& w, std::int64_t now = 0) {
  return q.submit({.sequence = {w.sequence},
                   .number = {w.round},
                   .kind = w.prefill_only ? round_kind::prefill : round_kind::answer,
                   .splices = w.splices,
                   .from = w.from,
                   .tail = w.tail,
                   .draft = w.draft,
                   .segments = w.segments},
                  {{w.tenant}, w.tokens_max}, at(now));
}

submit_outcome submit(run_queue& q, const round_spec& w, std::int64_t now = 0) { return offer(q, w, now).outcome; }

/// Runs one pass in which every run that wants logits accepts `accepted` draft tokens and gets one more.
std::vector<round_outcome> pass(run_queue& q, std::int64_t now = 0, std::uint32_t accepted = 0) {
  const auto plan = q.plan(roomy_budget, at(now));
  q.begin(plan);
  q.check_integrity();
  std::vector<run_answer> answers;
  for (const auto& run : plan.runs) {
    run_answer a;
    if (run.wants_logits) {
      a.accepted_count = std::min(accepted, run.draft_count);
      a.tokens.assign(a.accepted_count + 1, 50);
    }
    answers.push_back(a);
  }
  const auto done = q.complete(plan, answers, microseconds{10}, at(now));
  q.check_integrity();
  return done;
}

std::vector<token> tokens(std::size_t count) { return std::vector<token>(count, 7); }

/// A machine on which every row has a cost.
microseconds time_of_rows(std::uint64_t rows) { return microseconds{static_cast<std::int64_t>(2000 + 1000 * rows)}; }

run_queue make_where_rows_cost() {
  auto q = make({.running_max = 2, .waiting_max = 1, .tokens_max = 1000, .memory = kv::pages(100)});
  for (const std::uint64_t rows : {1U, 2U, 4U, 8U, 16U, 32U}) {
    const cost::cost_sample s{{rows, rows, rows, rows}, time_of_rows(rows)};
    q.learn_costs({&s, 1});
  }
  return q;
}

/// Completes at once what may be computed now; returns the number of sequences in the pass.
std::size_t compute(run_queue& q, std::int64_t now) {
  const auto plan = q.plan(roomy_budget, at(now));
  q.begin(plan);
  std::vector<run_answer> answers(plan.runs.size());
  for (std::size_t i = 0; i < plan.runs.size(); ++i) answers[i].tokens = tokens(plan.runs[i].wants_logits ? 1 : 0);
  q.complete(plan, answers, time_of_rows(plan.size.rows), at(now));
  return plan.runs.size();
}

TEST(run_queue, answers_a_round_and_appends_what_was_said) {
  auto q = make();
  EXPECT_EQ(submit(q, {.draft = {50, 50, 9}}), submit_outcome::taken);
  const auto done = pass(q, 0, 2);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].sequence.value, 1u);
  EXPECT_EQ(done[0].verified_count, 3u);
  EXPECT_EQ(done[0].passes, 1u);
  EXPECT_EQ(done[0].rows, 6u);
  EXPECT_EQ(q.known_count({1}), 6u);
  EXPECT_TRUE(q.plan(roomy_budget, at(0)).runs.empty());
  // The next round sends only its number; one token is left to compute.
  EXPECT_EQ(submit(q, {.round = 2, .from = 6, .tail = {}}), submit_outcome::taken);
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].first, 5u);
  EXPECT_EQ(plan.runs[0].rows(), 1u);
}

TEST(run_queue, says_how_many_rows_are_ahead_of_it) {
  auto q = make();
  EXPECT_EQ(q.pending_rows(), 0U);
  EXPECT_EQ(q.prompt_row_us(), 0) << "nothing was measured yet";
  submit(q, {.sequence = 1, .tail = tokens(60), .tokens_max = 100});
  submit(q, {.sequence = 2, .tail = tokens(30), .tokens_max = 100});
  EXPECT_EQ(q.pending_rows(), 90U);
  // Prefill-only rounds go last and delay no other round.
  submit(q, {.sequence = 3, .tail = tokens(40), .tokens_max = 100, .prefill_only = true});
  EXPECT_EQ(q.pending_rows(), 90U);
  pass(q);
  EXPECT_EQ(q.pending_rows(), 0U) << "answered";
  EXPECT_GT(q.prompt_row_us(), 0);
}

// If one pass in ten takes half as long again as the others, nineteen in twenty keep the limit.
TEST(run_queue, long_passes_keep_their_limit_where_some_take_longer_than_predicted) {
  auto q = make({.running_max = 2, .waiting_max = 1, .tokens_max = 2'000'000, .memory = kv::pages(100'000)});
  std::mt19937 random(5);
  budget limits = roomy_budget;
  limits.free = kv::pages(100'000);
  limits.time_max = microseconds{10'000};
  submit(q, {.sequence = 1, .tail = tokens(900'000), .tokens_max = 1'000'000});
  submit(q, {.sequence = 2, .tail = tokens(900'000), .tokens_max = 1'000'000});
  int late = 0, passes = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto plan = q.plan(limits, at(i));
    ASSERT_FALSE(plan.runs.empty());
    q.begin(plan);
    const auto usual = static_cast<double>(plan.size.rows) * 100;
    const microseconds took{static_cast<std::int64_t>(random() % 10 == 0 ? 1.5 * usual : usual)};
    q.complete(plan, std::vector<run_answer>(plan.runs.size()), took, at(i));
    if (i < 200) continue;
    ++passes;
    late += took > limits.time_max ? 1 : 0;
    EXPECT_GT(took, limits.time_max / 2) << "and are not much shorter than allowed";
  }
  EXPECT_LT(late, passes / 20);
}

TEST(run_queue, tells_repeated_and_old_rounds_apart) {
  auto q = make();
  EXPECT_EQ(submit(q, {.round = 3}), submit_outcome::taken);
  EXPECT_EQ(submit(q, {.round = 3}), submit_outcome::already_running);
  EXPECT_EQ(submit(q, {.round = 2}), submit_outcome::stale);
  EXPECT_EQ(submit(q, {.round = 4}), submit_outcome::stale);  // round 3 is still open
  pass(q);
  EXPECT_EQ(submit(q, {.round = 3}), submit_outcome::already_answered);
  EXPECT_EQ(submit(q, {.round = 2}), submit_outcome::stale);
  EXPECT_EQ(submit(q, {.round = 4, .from = 4, .tail = {}}), submit_outcome::taken);
}

TEST(run_queue, asks_for_the_log_it_lacks) {
  auto q = make();
  EXPECT_EQ(submit(q, {.from = 5}), submit_outcome::log_gap);
  EXPECT_FALSE(q.holds({1}));
  EXPECT_EQ(q.known_count({1}), 0u);
  submit(q, {});
  pass(q);
  EXPECT_EQ(submit(q, {.round = 2, .from = 5}), submit_outcome::log_gap);
  EXPECT_EQ(q.known_count({1}), 4u);
}

TEST(run_queue, refuses_what_cannot_fit) {
  auto q = make();
  EXPECT_EQ(submit(q, {.tail = {}}), submit_outcome::empty_log);
  EXPECT_EQ(submit(q, {.tokens_max = 201}), submit_outcome::too_long);
  EXPECT_EQ(submit(q, {.tail = tokens(5), .tokens_max = 4}), submit_outcome::too_long);
  auto tight = make({.running_max = 2, .waiting_max = 1, .tokens_max = 200, .memory = kv::pages(2)});
  EXPECT_EQ(submit(tight, {.tokens_max = 65}), submit_outcome::too_long);
  EXPECT_EQ(submit(tight, {.tokens_max = 64}), submit_outcome::taken);
  pass(tight);
  EXPECT_EQ(submit(tight, {.round = 2, .from = 4, .tail = tokens(61), .tokens_max = 64}), submit_outcome::too_long);
}

TEST(run_queue, admits_in_order_of_arrival_and_refuses_when_full) {
  auto q = make();
  EXPECT_EQ(submit(q, {.sequence = 1}, 10), submit_outcome::taken);
  EXPECT_EQ(submit(q, {.sequence = 2}, 20), submit_outcome::taken);
  EXPECT_EQ(submit(q, {.sequence = 3}, 30), submit_outcome::taken);
  EXPECT_EQ(q.running_count(), 2u);
  EXPECT_EQ(q.waiting_count(), 1u);
  EXPECT_EQ(submit(q, {.sequence = 4}, 40), submit_outcome::queue_full);
  EXPECT_FALSE(q.holds({4}));
  EXPECT_EQ(q.plan(roomy_budget, at(50)).runs.size(), 2u);
  q.release({1});
  EXPECT_EQ(q.waiting_count(), 0u);
  const auto plan = q.plan(roomy_budget, at(60));
  ASSERT_EQ(plan.runs.size(), 2u);
  EXPECT_EQ(plan.runs[1].sequence.value, 3u);
}

TEST(run_queue, a_flood_of_one_tenant_does_not_keep_another_out) {
  for (const char* policy : {"fifo", "fair_share"}) {
    auto q = make({.running_max = 8, .waiting_max = 16, .tokens_max = 200, .memory = kv::pages(400)}, policy);
    for (std::uint64_t s = 1; s <= 24; ++s) ASSERT_EQ(submit(q, {.sequence = s}), submit_outcome::taken);
    EXPECT_EQ(submit(q, {.sequence = 25}), submit_outcome::queue_full);
    std::map<std::uint64_t, std::uint64_t> rounds;
    const auto ask_again = [&](const std::vector<round_outcome>& done) {
      for (const auto& d : done) {
        submit(q, {.sequence = d.sequence.value,
                   .round = ++rounds[d.sequence.value] + 1,
                   .from = q.known_count(d.sequence),
                   .tail = {}});
      }
    };
    for (int i = 0; i < 5; ++i) ask_again(pass(q));
    // One request comes after the other, while the flood's answers never end.
    for (std::uint64_t s = 100; s < 140; ++s) {
      ASSERT_EQ(submit(q, {.sequence = s, .tenant = 2}), submit_outcome::taken) << policy;
      const auto done = pass(q);
      EXPECT_TRUE(std::ranges::any_of(done, [&](const auto& d) { return d.sequence.value == s; })) << "the next pass";
      q.release({s});
      ask_again(done);
      EXPECT_EQ(q.running_count(), 8u) << "then the flood has all slots again";
    }
    EXPECT_EQ(submit(q, {.sequence = 25}), submit_outcome::queue_full);
  }
}

TEST(run_queue, ignores_the_answer_to_a_released_run) {
  auto q = make();
  submit(q, {});
  const auto plan = q.plan(roomy_budget, at(0));
  q.begin(plan);
  q.release({1});
  submit(q, {.tail = {9}});  // a new sequence with the same number
  EXPECT_TRUE(q.complete(plan, std::vector<run_answer>{{0, {50}}}, microseconds{1}, at(1)).empty());
  EXPECT_EQ(q.known_count({1}), 1u);
  q.check_integrity();
  EXPECT_EQ(pass(q).size(), 1u);
}

TEST(run_queue, opens_runs_again_that_were_put_back) {
  auto q = make();
  submit(q, {});
  const auto plan = q.plan(roomy_budget, at(0));
  q.begin(plan);
  EXPECT_TRUE(q.plan(roomy_budget, at(0)).runs.empty());
  q.put_back(plan);
  EXPECT_EQ(q.plan(roomy_budget, at(0)).runs.size(), 1u);
}

TEST(run_queue, an_edit_leaves_a_hole_that_is_computed_before_the_end) {
  auto q = make();
  submit(q, {.tail = tokens(20)});
  pass(q);  // 21 tokens in the log, 20 of them computed
  const std::vector<token> fresh{8, 9, 10};
  const log_splice edit{.at = 5, .removed_count = 2, .tokens = fresh, .policy = kv::splice_policy::pie};
  const auto done = offer(q, {.round = 2, .from = 22, .tail = {}, .splices = {edit}});
  EXPECT_EQ(done.outcome, submit_outcome::taken);
  const kv::table_splice in_table{
      .keep_count = 20, .at = 5, .removed_count = 2, .shift = 1, .policy = kv::splice_policy::pie};
  EXPECT_EQ(done.splices, std::vector{in_table});
  EXPECT_EQ(q.log({1}).kv_count(), 18u);
  q.check_integrity();
  auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].first, 5u);
  EXPECT_EQ(plan.runs[0].rows(), 3u);
  EXPECT_FALSE(plan.runs[0].wants_logits);
  EXPECT_TRUE(pass(q).empty());
  plan = q.plan(roomy_budget, at(0));
  EXPECT_EQ(plan.runs[0].first, 21u);
  EXPECT_TRUE(plan.runs[0].wants_logits);
  EXPECT_EQ(pass(q).size(), 1u);
  EXPECT_EQ(q.log({1}).tokens()[5], 8);
  EXPECT_EQ(q.known_count({1}), 23u);
  // Losing KV that was moved is reported, because computing it again gives other bits.
  q.forget_all_kv();
  submit(q, {.round = 3, .from = 23, .tail = {}});
  EXPECT_EQ(pass(q)[0].recomputed_count, 1u);
}

TEST(run_queue, an_exact_edit_computes_all_behind_it) {
  auto q = make();
  submit(q, {.tail = tokens(20)});
  pass(q);
  const log_splice edit{.at = 5, .removed_count = 2};
  EXPECT_EQ(submit(q, {.round = 2, .from = 19, .tail = {}, .splices = {edit}}), submit_outcome::taken);
  const auto plan = q.plan(roomy_budget, at(0));
  EXPECT_EQ(q.log({1}).kv_count(), 5u);
  EXPECT_EQ(plan.runs[0].first, 5u);
  EXPECT_EQ(plan.runs[0].rows(), 14u);
  q.forget_all_kv();
  EXPECT_EQ(pass(q)[0].recomputed_count, 0u);
}

TEST(run_queue, takes_splices_with_their_round_or_not_at_all) {
  auto q = make();
  const log_splice edit{.at = 2, .removed_count = 1, .policy = kv::splice_policy::pie};
  const log_splice outside{.at = 3, .removed_count = 2};
  EXPECT_EQ(submit(q, {.splices = {edit}}), submit_outcome::log_gap) << "nothing is known so far";
  submit(q, {});
  pass(q);
  EXPECT_EQ(submit(q, {.round = 2, .from = 1, .tail = {}, .splices = {edit, outside}}), submit_outcome::log_gap);
  EXPECT_EQ(submit(q, {.round = 2, .from = 4, .tail = {}, .splices = {edit}}), submit_outcome::log_gap);
  EXPECT_EQ(q.known_count({1}), 4u);
  const std::vector<token> many(97, 7);
  EXPECT_EQ(submit(q, {.round = 2, .from = 1, .tail = {}, .splices = {{.at = 0, .removed_count = 0, .tokens = many}}}),
            submit_outcome::log_gap)
      << "more than tokens_max";
  EXPECT_EQ(submit(q, {.round = 2, .from = 3, .tail = {}, .splices = {edit}}), submit_outcome::taken);
  EXPECT_EQ(submit(q, {.round = 2, .from = 3, .tail = {}, .splices = {edit}}), submit_outcome::already_running);
  pass(q);
  EXPECT_EQ(submit(q, {.round = 2, .from = 3, .tail = {}, .splices = {edit}}), submit_outcome::already_answered);
  EXPECT_EQ(q.known_count({1}), 4u);
}

TEST(run_queue, a_round_for_the_cache_says_nothing_and_can_be_overtaken) {
  auto q = make();
  EXPECT_EQ(submit(q, {.tail = tokens(40), .draft = {1}, .prefill_only = true}), submit_outcome::taken);
  EXPECT_EQ(submit(q, {.round = 2, .from = 40, .tail = {}, .prefill_only = true}), submit_outcome::taken);
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].rows(), 39u);
  EXPECT_FALSE(plan.runs[0].wants_logits);
  q.begin(plan);
  EXPECT_EQ(submit(q, {.round = 3, .from = 40, .tail = {}}), submit_outcome::busy);
  const auto done = q.complete(plan, std::vector<run_answer>(1), microseconds{1}, at(0));
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].round.value, 2u);
  EXPECT_EQ(submit(q, {.round = 3, .from = 40, .tail = {}, .prefill_only = true}), submit_outcome::nothing_to_do);
  EXPECT_EQ(submit(q, {.round = 3, .from = 40, .tail = {}}), submit_outcome::already_answered);
  EXPECT_EQ(submit(q, {.round = 4, .from = 40, .tail = {}}), submit_outcome::taken);
  EXPECT_EQ(pass(q).size(), 1u);
  EXPECT_EQ(q.known_count({1}), 41u);
}

TEST(run_queue, a_round_for_the_cache_waits_until_nobody_else_wants_the_pass) {
  auto q = make_where_rows_cost();
  submit(q, {.sequence = 1, .tail = tokens(400), .tokens_max = 1000, .prefill_only = true});
  submit(q, {.sequence = 2, .tail = tokens(5), .tokens_max = 1000});
  auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].sequence.value, 2u);
  EXPECT_FALSE(q.replan_at());
  EXPECT_EQ(compute(q, 0), 1U);
  // The other sequence may be making its next draft.
  EXPECT_TRUE(q.plan(roomy_budget, at(0)).runs.empty());
  ASSERT_TRUE(q.replan_at());
  EXPECT_GE(*q.replan_at(), at(30'000)) << "a chunk takes longer than a draft model";
  const instant after = *q.replan_at();
  EXPECT_TRUE(q.plan(roomy_budget, after - microseconds{1}).runs.empty());
  budget chunks = roomy_budget;
  chunks.prompt_chunk_rows_max = 16;
  plan = q.plan(chunks, after);
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].sequence.value, 1u);
  EXPECT_EQ(plan.runs[0].rows(), 16u);
  EXPECT_FALSE(q.replan_at());
}

TEST(run_queue, a_pass_that_nobody_waits_for_has_one_chunk) {
  auto q = make();
  for (std::uint64_t s = 1; s <= 2; ++s) submit(q, {.sequence = s, .tail = tokens(40), .prefill_only = true});
  budget chunks = roomy_budget;
  chunks.prompt_chunk_rows_max = 16;
  EXPECT_EQ(q.plan(chunks, at(0)).size.rows, 16u);
}

TEST(run_queue, a_round_that_nobody_waits_for_makes_room_for_the_next) {
  auto q = make();
  submit(q, {.tail = tokens(40)});
  q.give_up({1}, {7}, at(0));  // the number of another round
  EXPECT_TRUE(q.awaits_answer({1}));
  q.give_up({1}, {1}, at(0));
  EXPECT_FALSE(q.awaits_answer({1}));
  q.check_integrity();
  EXPECT_EQ(submit(q, {.round = 2, .tail = tokens(40)}), submit_outcome::taken);
  // A round in flight is awaited, and its result is kept.
  const auto plan = q.plan({.rows_max = 32, .prompt_chunk_rows_max = 32, .free = kv::pages(8)}, at(0));
  q.begin(plan);
  q.give_up({1}, {2}, at(0));
  EXPECT_EQ(submit(q, {.round = 3, .tail = tokens(40)}), submit_outcome::busy);
  EXPECT_TRUE(q.complete(plan, std::vector<run_answer>(1), microseconds{1}, at(0)).empty());
  q.check_integrity();
  EXPECT_FALSE(q.awaits_answer({1}));
  EXPECT_EQ(submit(q, {.round = 3, .tail = tokens(40)}), submit_outcome::taken);
  EXPECT_EQ(q.plan(roomy_budget, at(0)).runs.at(0).rows(), 8u);
}

TEST(run_queue, answers_nobody_when_the_last_pass_of_a_given_up_round_ends) {
  auto q = make();
  submit(q, {});
  const auto plan = q.plan(roomy_budget, at(0));
  q.begin(plan);
  q.give_up({1}, {1}, at(0));
  EXPECT_TRUE(q.complete(plan, std::vector<run_answer>{{0, {50}}}, microseconds{1}, at(0)).empty());
  EXPECT_FALSE(q.awaits_answer({1}));
  EXPECT_EQ(q.known_count({1}), 4u);
  q.check_integrity();
}

TEST(run_queue, sequences_that_ask_for_nothing_lend_their_places) {
  auto q = make();
  for (std::uint64_t s = 1; s <= 2; ++s) submit(q, {.sequence = s});
  pass(q);
  submit(q, {.sequence = 3}, 1000);
  EXPECT_EQ(q.waiting_count(), 1u);
  EXPECT_TRUE(q.plan(roomy_budget, at(1000)).runs.empty());  // both may return at once
  EXPECT_EQ(q.plan(roomy_budget, at(300'000)).runs.size(), 1u);
  EXPECT_EQ(q.waiting_count(), 0u);
  EXPECT_EQ(q.running_count(), 2u);
  q.check_integrity();
  // One of the two continues where it was; the other one keeps its slot.
  std::uint32_t rows = 0;
  for (std::uint64_t s = 1; s <= 2; ++s) submit(q, {.sequence = s, .round = 2, .from = 4, .tail = {}}, 300'000);
  for (int i = 0; i < 4; ++i) {
    const auto plan = q.plan(roomy_budget, at(700'000 + i * 300'000));
    for (const auto& run : plan.runs) rows += run.sequence.value == 3 ? 0 : run.rows();
    pass(q, 700'000 + i * 300'000);
  }
  EXPECT_EQ(rows, 2u);
  EXPECT_EQ(q.waiting_count(), 0u);
}

TEST(run_queue, work_that_nobody_waits_for_keeps_no_place_from_others) {
  auto q = make();
  for (std::uint64_t s = 1; s <= 3; ++s) submit(q, {.sequence = s, .tail = tokens(40), .prefill_only = true});
  EXPECT_EQ(q.waiting_count(), 0u);
  EXPECT_EQ(submit(q, {.sequence = 4}), submit_outcome::taken);
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].sequence.value, 4u);
  EXPECT_EQ(q.running_count(), 2u);
  q.check_integrity();
}

TEST(run_queue, work_that_nobody_waits_for_yields_its_pages_and_takes_none_from_others) {
  auto q = make({.running_max = 4, .waiting_max = 4, .tokens_max = 200, .memory = kv::pages(2)});
  submit(q, {.sequence = 1, .tail = tokens(64), .tokens_max = 64, .prefill_only = true});
  budget chunks = roomy_budget;
  chunks.rows_max = 32;
  const auto first = q.plan(chunks, at(0));
  q.begin(first);
  q.complete(first, std::vector<run_answer>(1), microseconds{1}, at(0));
  submit(q, {.sequence = 2, .tail = tokens(40), .tokens_max = 64}, 5);  // needs both pages and came later
  auto plan = q.plan(full, at(5));
  ASSERT_TRUE(plan.runs.empty());
  EXPECT_EQ(q.choose_victim(plan, at(5)), sequence_id{1});
  pass(q, 5);
  EXPECT_FALSE(q.awaits_answer({2}));
  plan = q.plan(full, at(100'000));
  EXPECT_EQ(q.choose_victim(plan, at(100'000)), std::nullopt);
}

TEST(run_queue, knows_from_where_on_kv_is_another_than_the_log_would_give) {
  auto q = make();
  const auto finish = [&] {
    while (q.awaits_answer({1})) pass(q);
  };
  submit(q, {.tail = tokens(20)});
  finish();
  EXPECT_EQ(q.log({1}).exact_count(), 21u);
  const std::vector<token> nine{9, 9};
  const auto edit = [&](std::uint64_t round, std::uint32_t where, std::uint32_t removed, bool keeps) {
    const std::uint32_t known = q.known_count({1});
    const auto policy = keeps ? kv::splice_policy::pie : kv::splice_policy::exact;
    EXPECT_EQ(submit(q, {.round = round,
                         .from = known + 2 - removed,
                         .tail = {},
                         .splices = {{.at = where, .removed_count = removed, .tokens = nine, .policy = policy}}}),
              submit_outcome::taken);
  };
  edit(2, 10, 0, true);
  EXPECT_EQ(q.log({1}).exact_count(), 12u);
  finish();
  EXPECT_EQ(q.log({1}).exact_count(), 12u) << "tokens after stale ones attended to them";
  EXPECT_EQ(q.log({1}).computed_prefix().size(), 12u) << "others may share exact KV";
  edit(3, 15, 1, true);
  EXPECT_EQ(q.log({1}).exact_count(), 12u);
  finish();
  edit(4, 12, 0, false);
  EXPECT_EQ(q.log({1}).exact_count(), q.known_count({1})) << "everything stale is recomputed";
  finish();
  edit(5, 3, 2, true);
  EXPECT_EQ(q.log({1}).exact_count(), 5u);
  q.forget_all_kv();
  EXPECT_EQ(q.log({1}).exact_count(), q.known_count({1}));
}

TEST(run_queue, takes_what_fits_into_the_room_that_a_sequence_has) {
  auto q = make();
  submit(q, {.tail = tokens(20)});
  pass(q);
  submit(q, {.round = 2, .from = 21, .tail = {}, .draft = tokens(40)});
  EXPECT_TRUE(q.plan(full, at(0)).runs.empty());
  const auto plan = q.plan(full, at(0), [](sequence_id) { return kv::growth{.room = 12}; });
  EXPECT_EQ(plan.runs.at(0).rows(), 12u);
}

TEST(run_queue, computes_everything_again_when_all_kv_is_lost) {
  auto q = make();
  submit(q, {.tail = tokens(33)});
  pass(q);
  q.forget_all_kv();
  submit(q, {.round = 2, .from = 34, .tail = {}});
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].rows(), 34u);
}

TEST(run_queue, goes_on_from_what_is_known_of_a_beginning) {
  auto q = make();
  submit(q, {.tail = tokens(70)});
  q.wait_until({1}, at(1000));
  EXPECT_TRUE(q.plan(roomy_budget, at(0)).runs.empty());
  q.note_adopted({1}, 64);
  q.check_integrity();
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].first, 64u);
  EXPECT_EQ(plan.runs[0].rows(), 6u);
  const auto done = pass(q);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].cached_count, 64u);
  EXPECT_EQ(q.log({1}).computed_prefix().size(), 70u);
}

TEST(run_queue, does_not_wait_for_ever_for_what_is_known) {
  auto q = make();
  submit(q, {.tail = tokens(40)});
  q.wait_until({1}, at(1000));
  EXPECT_TRUE(q.plan(roomy_budget, at(999)).runs.empty());
  EXPECT_EQ(q.plan(roomy_budget, at(1000)).runs.size(), 1u);
  q.wait_until({1}, at(2000));
  q.forget_all_kv();
  EXPECT_EQ(q.plan(roomy_budget, at(0)).runs.size(), 1u) << "its leader is gone";
}

TEST(run_queue, counts_the_tokens_that_a_round_found) {
  auto q = make();
  submit(q, {.tail = tokens(40)});
  EXPECT_EQ(pass(q).at(0).cached_count, 0u);
  submit(q, {.round = 2, .from = 41, .tail = {}});
  EXPECT_EQ(pass(q).at(0).cached_count, 40u);
}

TEST(run_queue, computes_again_from_the_first_token_that_changed) {
  auto q = make();
  submit(q, {.tail = {1, 2, 3, 4, 5}});
  pass(q);
  submit(q, {.round = 2, .from = 2, .tail = {3, 9, 9, 9}});
  const auto plan = q.plan(roomy_budget, at(0));
  ASSERT_EQ(plan.runs.size(), 1u);
  EXPECT_EQ(plan.runs[0].first, 3u);
  EXPECT_EQ(plan.runs[0].rows(), 3u);
}

TEST(run_queue, shortens_a_draft_to_the_promised_length) {
  auto q = make();
  submit(q, {.draft = tokens(9), .tokens_max = 5});
  EXPECT_EQ(q.draft({1}).size(), 2u);
}

/// Fills the pool with `count` sequences of `each` tokens.
void fill(run_queue& q, std::uint64_t count, std::size_t each, bool same_instant) {
  for (std::uint64_t s = 1; s <= count; ++s) {
    ASSERT_EQ(submit(q, {.sequence = s, .tail = tokens(each), .tokens_max = 64},
                     same_instant ? 0 : static_cast<std::int64_t>(s)),
              submit_outcome::taken);
  }
  pass(q, 100);
}

TEST(run_queue, widths_follow_the_chances_that_come_with_the_draft) {
  auto q = make_where_rows_cost();
  auto width = [&, round = std::uint64_t{0}](std::vector<cost::draft_segment> chances) mutable {
    const std::uint32_t known = round == 0 ? 0 : q.known_count({1});
    EXPECT_EQ(submit(q, {.round = ++round,
                         .from = known,
                         .tail = known == 0 ? tokens(3) : tokens(0),
                         .draft = tokens(12),
                         .segments = std::move(chances),
                         .tokens_max = 1000}),
              submit_outcome::taken);
    const auto plan = q.plan(roomy_budget, at(0));
    q.begin(plan);
    const run_answer answer{0, tokens(1)};
    q.complete(plan, {&answer, 1}, time_of_rows(plan.runs.at(0).rows()), at(0));
    return plan.runs[0].draft_count;
  };
  EXPECT_EQ(width({{12, 0.99}}), 12U);
  EXPECT_EQ(width({}), 12U) << "nothing prevents it";
  EXPECT_EQ(width({{5, 0.99}, {7, 0.05}}), 5U);
  EXPECT_LT(width({{12, 0.1}}), 2U);
}

TEST(run_queue, learns_from_its_passes_which_part_of_the_experts_text_touches) {
  auto q = make({.running_max = 2, .waiting_max = 1, .tokens_max = 1000, .memory = kv::pages(100)});
  q.learn_costs({}, {.layers = 4, .experts = 64, .used = 8});
  const cost::work_size wide{64, 64, 64, 64};
  const double before = q.cost().predict_experts(wide);
  for (std::uint64_t round = 1; round <= 20; ++round) {
    const std::uint32_t known = round == 1 ? 0 : q.known_count({1});
    submit(q, {.round = round,
               .from = known,
               .tail = known == 0 ? tokens(8) : tokens(0),
               .draft = tokens(7),
               .tokens_max = 1000});
    const auto plan = q.plan(roomy_budget, at(0));
    q.begin(plan);
    const run_answer answer{0, tokens(1)};
    q.complete(plan, {&answer, 1}, microseconds{1000}, at(0), 4 * 12);
  }
  EXPECT_LT(q.cost().predict_experts(wide), before / 2);
}

TEST(run_queue, a_prompt_that_is_alone_has_longer_passes) {
  auto q = make({.running_max = 2, .waiting_max = 1, .tokens_max = 1000, .memory = kv::pages(100)});
  std::vector<cost::cost_sample> samples;
  for (std::uint64_t i = 0; i < 200; ++i) {
    const cost::work_size size{1 + i % 50, (i * 7919) % 5000, (i * 104729) % 3000};
    samples.push_back({size, time_of_rows(size.rows)});
  }
  q.learn_costs(samples);
  budget limits = roomy_budget;
  limits.time_max = microseconds{20'000};
  submit(q, {.tail = tokens(200), .tokens_max = 1000});
  const auto alone = q.plan(limits, at(0));
  ASSERT_EQ(alone.runs.size(), 1u);
  EXPECT_EQ(alone.runs[0].rows(), 48u) << "2.5 times as long";
  submit(q, {.sequence = 2, .tail = tokens(1), .tokens_max = 1000});
  const auto together = q.plan(limits, at(0));
  EXPECT_LE(together.predicted, limits.time_max);
  EXPECT_EQ(together.size.rows, 18u);
}

TEST(run_queue, tries_a_draft_that_seems_not_to_pay_now_and_then) {
  auto q = make_where_rows_cost();
  microseconds all{0};
  microseconds on_trials{0};
  std::uint32_t trials = 0;
  for (std::uint64_t round = 1; round <= 200; ++round) {
    const std::uint32_t known = round == 1 ? 0 : q.known_count({1});
    submit(q, {.round = round,
               .from = known,
               .tail = known == 0 ? tokens(3) : tokens(0),
               .draft = tokens(4),
               .segments = {{4, 0.05}},
               .tokens_max = 1000});
    const auto plan = q.plan(roomy_budget, at(0));
    q.begin(plan);
    const run_answer answer{0, tokens(1)};
    const auto took = time_of_rows(plan.runs.at(0).rows());
    q.complete(plan, {&answer, 1}, took, at(0));
    all += took;
    on_trials += took - time_of_rows(plan.runs[0].log_count);
    trials += plan.runs[0].draft_count > 0 ? 1 : 0;
  }
  EXPECT_GT(trials, 5U) << "otherwise it would not notice that drafts became cheap";
  EXPECT_LT(on_trials, all / 20);
}

TEST(run_queue, uses_a_width_again_that_once_was_slow) {
  auto q = make({.running_max = 2, .waiting_max = 1, .tokens_max = 30'000, .memory = kv::pages(1000)});
  const auto time_of = [](std::uint64_t rows, double slower) {
    return microseconds{static_cast<std::int64_t>((7000 + 300 * static_cast<double>(rows)) * slower)};
  };
  std::vector<cost::cost_sample> samples;
  for (int turn = 0; turn < 40; ++turn) {
    for (const std::uint64_t rows : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
      samples.push_back({{rows, rows, rows, rows}, time_of(rows, rows > 16 ? 3 : 1)});
    }
  }
  q.learn_costs(samples);
  std::vector<std::uint32_t> widths;
  for (std::uint64_t round = 1; round <= 300; ++round) {
    const std::uint32_t known = round == 1 ? 0 : q.known_count({1});
    submit(q, {.round = round,
               .from = known,
               .tail = known == 0 ? tokens(3) : tokens(0),
               .draft = tokens(60),
               .segments = {{60, 1.0}},
               .tokens_max = 30'000});
    const auto plan = q.plan(roomy_budget, at(0));
    q.begin(plan);
    widths.push_back(plan.runs.at(0).draft_count);
    const run_answer answer{widths.back(), tokens(widths.back() + 1)};
    q.complete(plan, {&answer, 1}, time_of(plan.size.rows, 1), at(0));
  }
  EXPECT_LT(widths[1], 20U) << "wide passes seem slow";
  EXPECT_EQ(widths.back(), 60U) << "they are not";
}

TEST(run_queue, a_pass_waits_for_the_session_that_was_just_answered) {
  auto q = make_where_rows_cost();
  std::uint64_t round = 0;
  const auto ask = [&](std::int64_t now) {
    const std::uint32_t known = round == 0 ? 0 : q.known_count({1});
    submit(q, {.round = ++round, .from = known, .tail = tokens(known == 0 ? 3 : 0), .tokens_max = 1000}, now);
  };
  std::int64_t now = 1;
  for (; round < 10; now += 500) {
    ask(now);
    ASSERT_EQ(compute(q, now), 1U) << "alone it never waits";
  }
  const std::int64_t answered = now - 500;
  submit(q, {.sequence = 2, .tail = tokens(300), .tokens_max = 1000}, answered);
  EXPECT_TRUE(q.plan(roomy_budget, at(answered)).runs.empty())
      << "otherwise the first would only be in every second pass";
  ASSERT_TRUE(q.replan_at());
  EXPECT_GE(*q.replan_at(), at(answered + 500));
  EXPECT_LE(*q.replan_at(), at(answered + 1000));
  ask(now);
  EXPECT_EQ(compute(q, now), 2U) << "both together, as soon as it has come";
  EXPECT_EQ(q.gathered().waits, 1U);
  EXPECT_EQ(q.gathered().missed, 0U);

  submit(q, {.sequence = 2, .round = 2, .from = q.known_count({2}), .tail = {}, .tokens_max = 1000}, now);
  EXPECT_TRUE(q.plan(roomy_budget, at(now)).runs.empty());
  const auto over = *q.replan_at();
  EXPECT_EQ(q.plan(roomy_budget, over).runs.size(), 1U) << "one that does not return is awaited once";
  EXPECT_EQ(q.gathered().missed, 1U);
}

TEST(run_queue, a_pass_does_not_wait_for_an_answer_that_has_ended) {
  auto q = make_where_rows_cost();
  std::int64_t now = 1;
  for (std::uint64_t round = 1; round <= 10; ++round, now += 500) {
    const std::uint32_t known = round == 1 ? 0 : q.known_count({1});
    submit(q, {.round = round, .from = known, .tail = tokens(known == 0 ? 3 : 0), .tokens_max = 1000}, now);
    compute(q, now);
  }
  submit(q, {.sequence = 2, .tail = tokens(3), .tokens_max = 1000}, now - 500);
  ASSERT_TRUE(q.plan(roomy_budget, at(now - 500)).runs.empty());
  auto released = q.known_count({1});
  EXPECT_GT(released, 0U);
  q.give_up({1}, {10}, at(now - 400));
  EXPECT_EQ(q.plan(roomy_budget, at(now - 400)).runs.size(), 1U);
}

TEST(run_queue, counts_who_could_have_been_in_a_pass) {
  auto q = make_where_rows_cost();
  for (std::uint64_t s = 1; s <= 2; ++s) submit(q, {.sequence = s, .tail = tokens(3), .tokens_max = 1000});
  compute(q, 0);
  EXPECT_EQ(q.gathered().fill, 1);
  // Each one asks while the other's pass runs.
  std::array<std::uint64_t, 2> rounds{1, 1};
  const auto ask = [&](std::uint64_t s, std::int64_t now) {
    submit(q, {.sequence = s, .round = ++rounds[s - 1], .from = q.known_count({s}), .tail = {}, .tokens_max = 1000},
           now);
  };
  ask(1, 100'000);
  for (std::int64_t now = 100'000; now < 20'000'000; now += 200'000) {
    for (std::uint64_t s = 1; s <= 2; ++s) {
      const auto plan = q.plan(roomy_budget, at(now));
      ASSERT_EQ(plan.runs.size(), 1U);
      q.begin(plan);
      ask(3 - s, now + 50'000);
      const run_answer answer{0, tokens(1)};
      q.complete(plan, {&answer, 1}, time_of_rows(1), at(now += 100'000));
    }
  }
  EXPECT_NEAR(q.gathered().fill, 0.5, 0.03);
}

TEST(run_queue, takes_pages_from_the_latest_comer) {
  auto q = make({.running_max = 4, .waiting_max = 4, .tokens_max = 200, .memory = kv::pages(4)});
  fill(q, 4, 32, false);
  for (std::uint64_t s = 1; s <= 4; ++s) submit(q, {.sequence = s, .round = 2, .from = 33, .tail = {}}, 200);
  const auto plan = q.plan(full, at(200));
  EXPECT_TRUE(plan.runs.empty());
  EXPECT_EQ(plan.left.size(), 4u);
  EXPECT_EQ(q.choose_victim(plan, at(200)), sequence_id{4});
  budget one_page = full;
  one_page.free = kv::pages(1);
  const auto next = q.plan(one_page, at(200));
  ASSERT_FALSE(next.runs.empty());
  EXPECT_EQ(next.runs[0].sequence.value, 1u);
}

TEST(run_queue, finds_a_victim_among_sequences_of_one_instant) {
  auto q = make({.running_max = 2, .waiting_max = 4, .tokens_max = 64, .memory = kv::pages(2)});
  fill(q, 2, 32, true);
  for (std::uint64_t s = 1; s <= 2; ++s) submit(q, {.sequence = s, .round = 2, .from = 33, .tail = {}}, 200);
  EXPECT_EQ(q.choose_victim(q.plan(full, at(200)), at(200)), sequence_id{2});
}

TEST(run_queue, finds_a_victim_when_the_youngest_ranks_first) {
  // 1 is old and within its prompt, 2 is young and decodes. Fifo ranks 2 first, yet 2 must yield.
  auto q = make({.running_max = 2, .waiting_max = 4, .tokens_max = 96, .memory = kv::pages(3)});
  submit(q, {.sequence = 2, .tail = tokens(32), .tokens_max = 96}, 2);
  pass(q, 2);
  submit(q, {.sequence = 1, .tail = tokens(80), .tokens_max = 96}, 1);
  budget chunked = roomy_budget;
  chunked.prompt_chunk_rows_max = 64;
  const auto chunk = q.plan(chunked, at(3));
  q.begin(chunk);
  q.complete(chunk, std::vector<run_answer>(chunk.runs.size()), microseconds{1}, at(3));
  submit(q, {.sequence = 2, .round = 2, .from = 33, .tail = {}}, 4);
  const auto stuck = q.plan(full, at(4));
  ASSERT_TRUE(stuck.runs.empty());
  ASSERT_EQ(stuck.left.size(), 2u);
  EXPECT_EQ(q.choose_victim(stuck, at(4)), sequence_id{2});
  EXPECT_FALSE(q.plan(chunked, at(4)).runs.empty());
}

TEST(run_queue, takes_pages_from_the_idle_before_the_busy) {
  auto q = make({.running_max = 3, .waiting_max = 4, .tokens_max = 96, .memory = kv::pages(3)});
  fill(q, 3, 32, false);
  // 1 does not return; 2 and 3 do.
  for (std::uint64_t s = 2; s <= 3; ++s) submit(q, {.sequence = s, .round = 2, .from = 33, .tail = {}}, 200);
  const auto plan = q.plan(full, at(200));
  EXPECT_EQ(q.choose_victim(plan, at(1'000'000)), sequence_id{1});
}

TEST(run_queue, decodes_and_prompts_that_find_no_room_take_turns) {
  auto q = make({.running_max = 40, .waiting_max = 4, .tokens_max = 100, .memory = kv::pages(400)});
  for (std::uint64_t s = 1; s <= 32; ++s) submit(q, {.sequence = s}, static_cast<std::int64_t>(s));
  pass(q);
  for (std::uint64_t s = 1; s <= 32; ++s) submit(q, {.sequence = s, .round = 2, .from = 4, .tail = {}});
  submit(q, {.sequence = 33, .tail = tokens(8)});
  for (const std::uint32_t rows : {1U, 8U}) {
    std::map<std::uint64_t, int> waited;
    int longest = 0;
    for (int i = 0; i < 200; ++i) {
      budget few = roomy_budget;
      few.rows_max = rows;
      const auto plan = q.plan(few, at(50));
      q.begin(plan);
      std::vector<run_answer> answers;
      for (std::uint64_t s = 1; s <= 33; ++s) ++waited[s];
      for (const auto& run : plan.runs) {
        answers.push_back({0, run.wants_logits ? tokens(1) : tokens(0)});
        waited[run.sequence.value] = 0;
      }
      for (const auto& [sequence, passes] : waited) longest = std::max(longest, passes);
      for (const auto& done : q.complete(plan, answers, microseconds{1}, at(50))) {
        // Each log eventually reaches its limit, and a new sequence takes its place.
        const auto known = q.known_count(done.sequence);
        const std::uint64_t s = done.sequence.value;
        if (s == 33) q.release({s});
        const auto again = s == 33
                               ? submit(q, {.sequence = s, .tail = tokens(8)}, 50)
                               : submit(q, {.sequence = s, .round = done.round.value + 1, .from = known, .tail = {}});
        ASSERT_EQ(again, submit_outcome::taken);
      }
    }
    EXPECT_LE(longest, rows == 1 ? 44 : 6) << rows << " rows";
  }
}

// Its own page table needs more pages than its tokens do, as after many splices.
TEST(run_queue, a_sequence_that_has_all_pages_and_lacks_more_is_computed_anew) {
  auto q = make();
  submit(q, {.sequence = 1, .tail = tokens(40)});
  pass(q);
  submit(q, {.sequence = 1, .round = 2, .from = 41, .tail = {}});
  EXPECT_EQ(q.choose_victim(q.plan(full, at(0)), at(0)), sequence_id{1});
  EXPECT_EQ(q.plan(roomy_budget, at(0)).runs.at(0).rows(), 41u);
}

TEST(run_queue, a_prefill_that_has_all_pages_and_lacks_more_is_computed_anew) {
  auto q = make();
  submit(q, {.sequence = 1, .tail = tokens(40)});
  pass(q);
  submit(q, {.sequence = 1, .round = 2, .from = 41, .tail = tokens(2), .prefill_only = true});
  EXPECT_EQ(q.choose_victim(q.plan(full, at(100'000)), at(100'000)), sequence_id{1});
  EXPECT_EQ(q.plan(roomy_budget, at(100'000)).runs.at(0).rows(), 42u);
}

TEST(run_queue, asks_nobody_when_nobody_starves) {
  auto q = make();
  submit(q, {});
  EXPECT_EQ(q.choose_victim(q.plan(roomy_budget, at(0)), at(0)), std::nullopt);
}

/// Counts pages as the cache manager does.
struct page_owner {
  std::uint32_t pages_count = 0;
  std::map<std::uint64_t, std::uint32_t> tokens;  // by sequence

  static std::uint32_t pages_of(std::uint32_t count) { return kv::growth{}.taken_by(count)[kv::kind::page]; }
  [[nodiscard]] std::uint32_t free_count() const {
    std::uint32_t held = 0;
    for (const auto& [sequence, count] : tokens) held += pages_of(count);
    EXPECT_LE(held, pages_count);
    return pages_count - held;
  }
  [[nodiscard]] kv::growth next(sequence_id sequence) const {
    const auto at = tokens.find(sequence.value);
    const std::uint32_t count = at == tokens.end() ? 0 : at->second;
    return {.room = pages_of(count) * kv::page_tokens - count};
  }
  /// Gives back what the log no longer has KV for.
  void trim(const run_queue& q) {
    for (auto& [sequence, count] : tokens) {
      if (q.holds({sequence})) count = std::min(count, q.log({sequence}).kv_count());
    }
  }
  void place(const batch_plan& plan) {
    for (const auto& run : plan.runs) {
      EXPECT_EQ(tokens[run.sequence.value], run.first);
      tokens[run.sequence.value] += run.rows();
    }
  }
};

TEST(run_queue, survives_random_operations_and_answers_every_round) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 chance(seed);
    auto q = make({.running_max = 4, .waiting_max = 4, .tokens_max = 120, .memory = kv::pages(6)},
                  seed % 2 == 0 ? "fifo" : "fair_share");
    struct mirror {
      std::uint64_t round = 0;
      std::size_t log = 0;
      bool open = false;
    };
    std::map<std::uint64_t, mirror> known;
    page_owner pages{.pages_count = 6};
    const auto release = [&](std::uint64_t sequence) {
      q.release({sequence});
      known.erase(sequence);
      pages.tokens.erase(sequence);
    };
    std::optional<batch_plan> flying;
    std::int64_t now = 0;
    int answered = 0;
    for (int i = 0; i < 2000; ++i) {
      now += static_cast<std::int64_t>(chance() % 3);
      const std::uint64_t s = 1 + chance() % 8;
      switch (chance() % 6) {
        case 0:
        case 1: {
          auto& m = known[s];
          if (m.open) break;
          round_spec w{.sequence = s,
                       .round = m.round + 1,
                       .from = static_cast<std::uint32_t>(m.log),
                       .tail = {},
                       .draft = tokens(chance() % 20),
                       .tokens_max = 120};
          if (!q.holds({s})) w.from = 0, w.round = 1, w.tail = tokens(1 + chance() % 60);
          const auto outcome = submit(q, w, now);
          if (outcome == submit_outcome::taken)
            m = {w.round, w.from + w.tail.size(), true};
          else
            EXPECT_TRUE(outcome == submit_outcome::queue_full || outcome == submit_outcome::too_long);
          break;
        }
        case 2:
          if (chance() % 4 == 0) release(s);
          break;
        case 3:
          if (chance() % 20 == 0) q.forget_all_kv(), flying.reset(), pages.tokens.clear();
          break;
        default:
          if (flying) {
            std::vector<run_answer> answers;
            for (const auto& run : flying->runs) {
              run_answer a;
              if (run.wants_logits) {
                a.accepted_count = static_cast<std::uint32_t>(chance() % (run.draft_count + 1));
                a.tokens = tokens(a.accepted_count + 1);
              }
              answers.push_back(a);
            }
            for (const auto& done : q.complete(*flying, answers, microseconds{50}, at(now))) {
              auto& m = known.at(done.sequence.value);
              EXPECT_TRUE(m.open);
              EXPECT_EQ(m.round, done.round.value);
              m.open = false;
              m.log = q.known_count(done.sequence);
              if (m.log >= 100) release(done.sequence.value);
              ++answered;
            }
            flying.reset();
          } else {
            pages.trim(q);
            const auto plan_next = [&] {
              return q.plan({.rows_max = 40, .prompt_chunk_rows_max = 16, .free = kv::pages(pages.free_count())},
                            at(now), [&](sequence_id sequence) { return pages.next(sequence); });
            };
            auto plan = plan_next();
            while (plan.runs.empty()) {
              const auto victim = q.choose_victim(plan, at(now));
              if (!victim) break;
              pages.tokens.erase(victim->value);
              plan = plan_next();
            }
            if (chance() % 10 == 0) {
              q.begin(plan);
              q.put_back(plan);
              break;
            }
            pages.place(plan);
            q.begin(plan);
            if (!plan.runs.empty()) flying = plan;
          }
      }
      q.check_integrity();
      (void)pages.free_count();  // checks the upper bound
      if (::testing::Test::HasFailure()) FAIL() << "seed " << seed;
    }
    EXPECT_GT(answered, 50) << "seed " << seed;
  }
}

}  // namespace
}  // namespace redline::scheduler
