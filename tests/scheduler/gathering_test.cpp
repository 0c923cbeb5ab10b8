// The rule for when a pass waits, first on values, then in a closed loop of sessions whose clock and accidents come
// from a seed. No model runs; a pass takes the time that was measured on a real machine.

#include "scheduler/gathering.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "scheduler/run_queue.hpp"

namespace redline::scheduler {
namespace {

/// Milliseconds of a pass with 1, 2, 4, ... rows, all with logits: a Qwen2-0.5B shape in Q8_0 on two AVX-512 cores.
microseconds time_of(const cost::work_size& size) {
  constexpr std::array<double, 10> ms = {16.4, 16.9, 16.9, 17.2, 29.7, 58.7, 117, 234, 468, 936};
  const double octave = std::log2(std::max<double>(static_cast<double>(size.rows), 1));
  const auto i = std::min<std::size_t>(static_cast<std::size_t>(octave), ms.size() - 2);
  return microseconds{std::llround(1000 * (ms[i] + (octave - static_cast<double>(i)) * (ms[i + 1] - ms[i])))};
}

std::vector<cost::cost_sample> measured() {
  std::vector<cost::cost_sample> all;
  for (int again = 0; again < 20; ++again) {
    for (std::uint64_t rows = 1; rows <= 512; rows += rows < 8 ? 1 : rows / 4) {
      const auto size = cost::size_of_run(0, rows, rows);
      all.push_back({size, time_of(size)});
    }
  }
  return all;
}

cost::cost_model model_of_machine() {
  cost::cost_model cost;
  for (const auto& s : measured()) cost.observe(s.size, s.took);
  return cost;
}

/// A sequence that nearly always returns after this time.
expected_round comes_after(microseconds time, std::uint64_t rows = 1) {
  const return_times blank(16);
  return_times seen(16);
  for (int i = 0; i < 50; ++i) seen.observe(time);
  return {seen.predict({}, blank), cost::size_of_run(100, rows, rows)};
}

std::optional<microseconds> wait_for(std::uint64_t rows_now, const std::vector<expected_round>& expected) {
  static const auto cost = model_of_machine();
  const auto step = choose_wait({.rounds = static_cast<double>(rows_now),
                                 .size = {rows_now, rows_now * 100, rows_now * 100, rows_now},
                                 .time_max = microseconds{80'000},
                                 .comes_back = microseconds{500},
                                 .expected = expected},
                                cost);
  return step ? std::optional(return_times::step(*step)) : std::nullopt;
}

TEST(gathering, a_sequence_alone_never_waits) { EXPECT_FALSE(wait_for(1, {})); }

TEST(gathering, one_row_waits_for_another_that_comes_soon) {
  const auto wait = wait_for(1, {comes_after(microseconds{500})});
  ASSERT_TRUE(wait);
  EXPECT_GE(*wait, microseconds{500});
  EXPECT_LE(*wait, microseconds{1000}) << "no longer than nearly all take";
}

TEST(gathering, two_groups_take_turns_where_a_draft_takes_as_long_as_a_pass) {
  EXPECT_FALSE(wait_for(1, {comes_after(microseconds{20'000})}));
  EXPECT_TRUE(wait_for(1, {comes_after(microseconds{4'000})})) << "a quarter of a pass is worth it";
}

TEST(gathering, many_do_not_wait_long_for_one) {
  const expected_round slow = comes_after(microseconds{4'000});
  EXPECT_TRUE(wait_for(1, {slow}));
  EXPECT_FALSE(wait_for(32, {slow})) << "it loses one round, while they would lose four milliseconds each";
}

TEST(gathering, counts_on_nobody_who_seldom_comes) {
  const return_times blank(16);
  return_times seen(16);
  for (int i = 0; i < 60; ++i) seen.observe(microseconds{i % 3 == 0 ? 500 : 900'000});
  EXPECT_FALSE(wait_for(4, {{seen.predict({}, blank), cost::size_of_run(100, 1, 1)}}));
}

TEST(gathering, waits_for_those_who_come_soon_and_not_for_the_others) {
  std::vector<expected_round> expected(8, comes_after(microseconds{400}));
  expected.push_back(comes_after(microseconds{30'000}));
  const auto wait = wait_for(4, expected);
  ASSERT_TRUE(wait);
  EXPECT_LE(*wait, microseconds{1000});
}

TEST(gathering, work_that_nobody_waits_for_stands_back) {
  static const auto cost = model_of_machine();
  const std::vector<expected_round> expected{comes_after(microseconds{25'000})};
  gathering g{.rounds = 0, .size = {256, 32'896, 256, 0}, .time_max = microseconds{80'000}, .expected = expected};
  EXPECT_TRUE(choose_wait(g, cost)) << "a chunk takes ten times as long";
  g.size = {1, 1, 1, 0};
  EXPECT_FALSE(choose_wait(g, cost));
}

TEST(gathering, waits_for_nobody_before_costs_are_known) {
  const std::vector<expected_round> expected{comes_after(microseconds{400})};
  EXPECT_FALSE(choose_wait({.rounds = 1, .size = {1, 1, 1, 1}, .expected = expected}, cost::cost_model{}));
}

// --- sessions in a closed loop

struct pass_record {
  instant began;
  std::size_t rows = 0;  // counts decoding sequences
};

class closed_loop {
 public:
  explicit closed_loop(std::uint64_t seed)
      : random_(seed),
        queue_({.running_max = 128, .waiting_max = 128, .tokens_max = 1 << 20, .memory = kv::pages(1 << 20)},
               *make_policy("fifo")) {
    queue_.learn_costs(measured());
  }

  /// return_us: a session takes this long, up to twice that, between an answer and its next question.
  void open(std::uint64_t id, std::uint32_t prompt = 4, std::int64_t return_us = 300) {
    sessions_[id] = {.return_us = return_us, .prompt = prompt};
    at(now_, [this, id] { ask(id); });
  }
  void set_return(std::uint64_t id, std::int64_t return_us) { sessions_.at(id).return_us = return_us; }
  void end(std::uint64_t id) {
    sessions_.erase(id);
    queue_.release({id});
    plan();
  }
  void lose_kv(std::uint64_t id) {
    if (!queue_.facts_of({id}).in_flight) queue_.forget_kv({id});
  }
  /// The session stops asking, like one whose client does not read.
  void fall_silent(std::uint64_t id) { sessions_.at(id).silent = true; }

  void run_for(microseconds time) {
    const instant until = now_ + time;
    while (!events_.empty() && events_.begin()->first <= until) {
      now_ = events_.begin()->first;
      const auto what = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      what();
    }
    now_ = until;
  }
  /// The row counts of passes that began at or after `since`.
  [[nodiscard]] std::vector<std::size_t> rows_since(instant since) const {
    std::vector<std::size_t> rows;
    for (const auto& p : passes_) {
      if (p.began >= since) rows.push_back(p.rows);
    }
    return rows;
  }
  [[nodiscard]] instant now() const { return now_; }
  [[nodiscard]] const run_queue& queue() const { return queue_; }

 private:
  struct session {
    std::int64_t return_us = 300;
    std::uint32_t prompt = 4;
    std::uint64_t round = 0;
    bool silent = false;
  };

  void at(instant when, std::function<void()> what) { events_.emplace(when, std::move(what)); }

  void ask(std::uint64_t id) {
    const auto it = sessions_.find(id);
    if (it == sessions_.end()) return;
    const std::vector<token> prompt(it->second.prompt, 1);
    const std::uint32_t known = queue_.known_count({id});
    const auto done = queue_.submit({.sequence = {id},
                                     .number = {++it->second.round},
                                     .from = known,
                                     .tail = known == 0 ? prompt : std::vector<token>{}},
                                    {{id % 3}, 1 << 20}, now_);
    ASSERT_EQ(done.outcome, submit_outcome::taken);
    plan();
  }

  void plan() {
    if (is_out_) return;
    auto plan = queue_.plan({.free = kv::pages(1 << 20), .rows_min = 128}, now_);
    queue_.check_integrity();
    if (plan.runs.empty()) {
      if (const auto look = queue_.replan_at()) at(*look, [this] { this->plan(); });
      return;
    }
    queue_.begin(plan);
    is_out_ = true;
    passes_.push_back({now_, static_cast<std::size_t>(
                                 std::ranges::count_if(plan.runs, [](const planned_run& r) { return r.decodes(); }))});
    const microseconds took = time_of(plan.size);
    at(now_ + took, [this, plan, took] {
      is_out_ = false;
      std::vector<run_answer> answers(plan.runs.size());
      for (std::size_t i = 0; i < answers.size(); ++i) {
        if (plan.runs[i].wants_logits) answers[i].tokens = {1};
      }
      for (const auto& done : queue_.complete(plan, answers, took, now_)) {
        const std::uint64_t id = done.sequence.value;
        const auto it = sessions_.find(id);
        if (it == sessions_.end() || it->second.silent) continue;
        const auto away = std::uniform_int_distribution(it->second.return_us, 2 * it->second.return_us)(random_);
        at(now_ + microseconds{away}, [this, id] { ask(id); });
      }
      this->plan();
    });
  }

  std::mt19937_64 random_;
  run_queue queue_;
  std::map<std::uint64_t, session> sessions_;
  std::multimap<instant, std::function<void()>> events_;
  instant now_{};
  bool is_out_ = false;
  std::vector<pass_record> passes_;
};

/// The time for three rounds of all sessions, even if they take turns.
microseconds three_rounds(std::size_t n) { return 3 * 2 * time_of({n, n, n, n}); }

class equal_sessions : public testing::TestWithParam<std::uint64_t> {};

TEST_P(equal_sessions, come_to_one_pass_within_three_rounds_of_anything_and_stay) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    closed_loop loop(seed);
    const std::uint64_t n = GetParam();
    const auto expect_together = [&](std::size_t count, const char* after, microseconds extra = {}) {
      loop.run_for(three_rounds(count) + extra);
      const instant since = loop.now();
      loop.run_for(40 * time_of({count, count, count, count}));
      const auto rows = loop.rows_since(since);
      ASSERT_GE(rows.size(), 20U);
      for (const std::size_t each : rows) ASSERT_EQ(each, count) << "after " << after << ", seed " << seed;
    };
    std::mt19937_64 random(seed);
    for (std::uint64_t id = 1; id <= n; ++id) {
      loop.run_for(microseconds{static_cast<std::int64_t>(random() % 20'000)});
      loop.open(id);
    }
    // The last sessions are computed first, and only then known to return.
    expect_together(n, "arrivals", 2 * time_of({n, n, n, n}));
    loop.open(100);
    expect_together(n + 1, "one more");
    loop.end(100);
    expect_together(n, "an end");
    loop.lose_kv(1);
    expect_together(n, "a preemption", microseconds{500'000});  // its log is recomputed
    loop.open(101, 600);                                        // half a second of prompt
    loop.run_for(microseconds{1'500'000});
    loop.end(101);
    expect_together(n, "a long prompt");
    loop.open(102);
    loop.run_for(microseconds{100'000});
    loop.fall_silent(102);
    expect_together(n, "one that asks no more");
    loop.end(102);
    loop.set_return(1, 60'000);
    loop.run_for(20 * time_of({n, n, n, n}) + microseconds{500'000});
    loop.set_return(1, 300);
    expect_together(n, "a slow time of one", microseconds{16 * 60'000});
    EXPECT_LT(loop.queue().gathered().missed, loop.queue().gathered().waits / 4);
    EXPECT_GT(loop.queue().gathered().fill, 0.9);
  }
}

TEST_P(equal_sessions, do_so_in_another_process_a_millisecond_away) {
  closed_loop loop(7);
  const std::uint64_t n = GetParam();
  for (std::uint64_t id = 1; id <= n; ++id) {
    loop.open(id, 4, 2'000);
    loop.run_for(microseconds{3'000});
  }
  loop.run_for(three_rounds(n) + microseconds{100'000});
  const instant since = loop.now();
  const microseconds ideal = time_of({n, n, n, n}) + microseconds{4'000};
  loop.run_for(40 * ideal);
  const auto rows = loop.rows_since(since);
  const auto rounds = std::accumulate(rows.begin(), rows.end(), std::size_t{0});
  // Where arithmetic is the limit (64 rows), it makes no difference whether a few are in another pass.
  EXPECT_GE(rounds, 39 * n) << "all together, each time after the slowest";
  if (n <= 16) {
    for (const std::size_t each : rows) ASSERT_EQ(each, n);
  }
}

INSTANTIATE_TEST_SUITE_P(gathering, equal_sessions, testing::Values(2, 3, 4, 8, 16, 33, 64));

TEST(gathering, a_tenant_whose_sessions_never_come_back_costs_the_others_little) {
  const auto rounds_of_the_others = [](bool is_there) {
    closed_loop loop(3);
    for (std::uint64_t id = 3; id <= 12; id += 3) loop.open(id);  // these belong to tenant 0
    std::uint64_t next = 1000;
    instant since{};
    for (int i = 0; i < 200; ++i) {
      // Sessions of tenant 1 ask once or twice, then fall silent and are replaced.
      if (is_there) {
        loop.open(3 * next + 1);
        loop.run_for(microseconds{30'000});
        loop.fall_silent(3 * next + 1);
        loop.run_for(microseconds{20'000});
        loop.end(3 * next++ + 1);
      } else {
        loop.run_for(microseconds{50'000});
      }
      if (i == 20) since = loop.now();
    }
    std::size_t rows = 0;
    for (const std::size_t each : loop.rows_since(since)) rows += std::min<std::size_t>(each, 4);
    return static_cast<double>(rows);
  };
  const double without = rounds_of_the_others(false);
  EXPECT_GT(rounds_of_the_others(true), 0.85 * without) << "its own prompts and rounds included";
}

TEST(gathering, sessions_that_draft_as_long_as_a_pass_takes_keep_two_groups) {
  closed_loop loop(5);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    loop.open(id, 4, 12'000);  // returns after 12 to 24 ms
    loop.run_for(microseconds{15'000});
  }
  loop.run_for(microseconds{1'000'000});
  const instant since = loop.now();
  loop.run_for(microseconds{2'000'000});
  const auto rows = loop.rows_since(since);
  std::size_t sum = 0;
  for (const std::size_t each : rows) sum += each;
  // If they shared a pass, each would have a round every 16.9 + 21 ms at best.
  EXPECT_GT(static_cast<double>(sum), 0.97 * 2 * 2'000 / (16.9 + 21));
}

}  // namespace
}  // namespace redline::scheduler
