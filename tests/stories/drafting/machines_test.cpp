// Users in a closed loop over measured curves of machines: the widths chosen by cost and by the drafter's record
// compared with every fixed width. The clock is the curve's; no model runs.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "runtime/base/philox.hpp"
#include "runtime/draft/acceptance_record.hpp"
#include "scheduler/run_queue.hpp"

namespace redline::scheduler {
namespace {

/// The milliseconds of a pass of k rows at a context, interpolated linearly between the table's values.
struct machine {
  const char* name;
  std::array<double, 8> ms;     // at context 0, for 1, 4, 8, 16, 32, 64, 128 and 512 rows
  double ms_per_thousand_read;  // per thousand tokens of context, over all runs
  double ms_per_million_pairs;
};
constexpr std::array<double, 8> table_rows = {1, 4, 8, 16, 32, 64, 128, 512};
constexpr machine machines[] = {
    // A Qwen2-0.5B shape in Q8_0 on two AVX-512 cores (bench/results).
    {"two cores", {26.2, 42, 54.5, 80, 128, 239, 445, 1750}, 1.25, 0.45},
    // The same shape with matrix units: flat up to 16 rows.
    {"two cores with tiles", {15.5, 15.9, 16.4, 17.5, 21, 30, 52, 190}, 0.4, 0.12},
    // Many cores, limited by memory up to 48 rows.
    {"64 cores", {3.1, 3.2, 3.2, 3.3, 3.5, 4.4, 7.9, 29}, 0.05, 0.01},
    {"accelerator", {11.8, 11.8, 11.9, 11.9, 12.0, 12.1, 12.6, 15}, 0.002, 0.0004},
};

microseconds time_of(const machine& m, const cost::work_size& size) {
  const auto rows = static_cast<double>(size.rows);
  std::size_t i = 1;
  while (i + 1 < table_rows.size() && table_rows[i] < rows) ++i;
  const double share = (rows - table_rows[i - 1]) / (table_rows[i] - table_rows[i - 1]);
  const double ms = m.ms[i - 1] + share * (m.ms[i] - m.ms[i - 1]) +
                    m.ms_per_thousand_read * static_cast<double>(size.context) / 1e3 +
                    m.ms_per_million_pairs * static_cast<double>(size.pairs) / 1e6;
  return microseconds{std::llround(ms * 1e3)};
}

constexpr std::uint32_t draft_width = 40;
constexpr std::uint32_t prompt_count = 300;
constexpr std::uint64_t tokens_each = 2400;

/// Whether the drafter knows the user's token at this index: nearly always while the answer repeats the old file, and
/// seldom where it is new. Some users' answers have longer new parts.
bool is_known(std::uint64_t user, std::uint64_t index) {
  const auto random = [](std::uint64_t a, std::uint64_t b) {
    return static_cast<double>(philox4x32(
               {static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(a >> 32), static_cast<std::uint32_t>(b), 1},
               {7, 7})[0]) /
           4294967296.0;
  };
  const bool is_new = random(index / 24, user + 1000) < 0.1 + 0.2 * static_cast<double>(user % 4);
  return random(user, index) < (is_new ? 0.25 : 0.98);
}

struct setting {
  std::optional<std::uint32_t> width;  // nullopt means that the scheduler chooses
};

/// The tokens per second of `users` after the widths were learned.
double goodput(const machine& m, std::uint64_t users, const setting& how) {
  run_queue q({.running_max = 64, .waiting_max = 1, .tokens_max = 1 << 20, .memory = kv::pages(1 << 20)},
              *make_policy("fifo"));
  budget limits{.rows_max = 4096,
                .prompt_chunk_rows_max = 4096,
                .free = kv::pages(1 << 20),
                .time_max = microseconds{60'000'000},
                .whole_drafts = how.width.has_value()};
  const std::uint32_t width = how.width.value_or(draft_width);
  std::vector<std::uint64_t> rounds(users, 0);
  draft::acceptance_record of_all;
  std::vector<draft::acceptance_record> records(users);
  const draft::graded_segment drafted{draft::source::lookup, 2, width};
  const std::vector<token> guess(width, 1);
  const std::vector<token> prompt(prompt_count, 1);
  instant now{};
  const auto ask = [&](std::uint64_t user) {
    const std::uint32_t known = q.known_count({user + 1});
    std::vector<cost::draft_segment> segments;
    for (const auto& part : records[user].parts({&drafted, 1}, &of_all)) segments.push_back(part.as_segment());
    q.submit({.sequence = {user + 1},
              .number = {++rounds[user]},
              .from = known,
              .tail = known == 0 ? prompt : std::vector<token>{},
              .draft = guess,
              .segments = segments},
             {{1}, 1 << 20}, now);
  };
  for (std::uint64_t user = 0; user < users; ++user) ask(user);
  // Every setting gets the same part of each user's text; the first quarter is for learning.
  const std::uint64_t tokens_max = users * tokens_each;
  std::uint64_t tokens = 0;
  std::uint64_t counted = 0;
  microseconds spent{0};
  while (tokens < tokens_max) {
    const auto plan = q.plan(limits, now);
    q.begin(plan);
    std::vector<run_answer> answers;
    for (const auto& run : plan.runs) {
      std::uint32_t accepted = 0;
      const std::uint64_t end = run.first + run.log_count;
      while (accepted < run.draft_count && is_known(run.sequence.value, end + accepted)) ++accepted;
      answers.push_back({accepted, std::vector<token>(accepted + 1, 1)});
      // The drafter also compares its draft, which may have been cut, with the token after the accepted ones.
      const bool is_next_right = accepted < width && is_known(run.sequence.value, end + accepted);
      const std::uint32_t right = accepted + (is_next_right ? 1 : 0);
      const bool is_wrong = accepted < width && !is_next_right;
      for (auto* record : {&records[run.sequence.value - 1], &of_all}) record->learn({&drafted, 1}, right, is_wrong);
    }
    const microseconds took = time_of(m, plan.size);
    now += took;
    std::uint64_t came = 0;
    for (const auto& a : answers) came += a.tokens.size();
    for (const auto& done : q.complete(plan, answers, took, now)) ask(done.sequence.value - 1);
    tokens += came;
    if (tokens < tokens_max / 4) continue;
    counted += came;
    spent += took;
  }
  return static_cast<double>(counted) / (static_cast<double>(spent.count()) / 1e6);
}

TEST(machines, chosen_widths_are_near_the_best_fixed_one_at_every_load) {
  std::printf("%-22s %5s %10s %10s %10s %6s\n", "tokens/s", "users", "without", "best fixed", "chosen", "");
  for (const machine& m : machines) {
    for (const std::uint64_t users : {1, 4, 16, 64}) {
      const double without = goodput(m, users, {0});
      double best = without;
      std::uint32_t best_width = 0;
      for (const std::uint32_t width : {1u, 2u, 4u, 8u, 16u, 40u}) {
        const double fixed = goodput(m, users, {width});
        if (fixed > best) best = fixed, best_width = width;
      }
      const double chosen = goodput(m, users, {});
      std::printf("%-22s %5llu %10.1f %7.1f@%-2u %10.1f %6.3f\n", m.name, static_cast<unsigned long long>(users),
                  without, best, best_width, chosen, chosen / best);
      EXPECT_GE(chosen, 0.97 * best) << m.name << ", " << users << " users, best with " << best_width;
      EXPECT_GE(chosen, 0.97 * without) << m.name << ", " << users;
    }
  }
}

}  // namespace
}  // namespace redline::scheduler
