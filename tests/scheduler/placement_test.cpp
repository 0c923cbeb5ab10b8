#include "scheduler/placement.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace redline::scheduler {
namespace {

worker_load idle() { return {.takes_work = true, .running_max = 8, .waiting_max = 8, .row_us = 100, .pass_us = 1000}; }

worker_load busy(std::uint32_t running) {
  auto load = idle();
  load.running = running;
  return load;
}

std::vector<token> prompt_of(std::size_t count, token first = 0) {
  std::vector<token> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

std::vector<std::uint64_t> keys_of(tenant_id scope, std::span<const token> prompt) {
  auto keys = chain_prefixes(prompt);
  for (auto& key : keys) key = prefix_key(scope, key);
  return keys;
}

TEST(placement, chooses_nobody_where_nobody_takes_work) {
  placement p;
  EXPECT_FALSE(p.choose({}));
  p.note(1, {});
  EXPECT_FALSE(p.choose({}));
  p.note(1, idle());
  EXPECT_EQ(p.choose({}), 1U);
  p.remove(1);
  EXPECT_FALSE(p.choose({}));
}

TEST(placement, chooses_only_among_those_that_may_be) {
  placement p;
  for (worker_number n = 1; n <= 5; ++n) p.note(n, idle());
  for (std::uint32_t random = 0; random < 50; ++random) {
    EXPECT_EQ(p.choose({.random = random, .may_be = [](worker_number n) { return n == 3; }}), 3U);
  }
}

TEST(placement, prefers_the_less_loaded_of_two) {
  placement p;
  p.note(1, busy(7));
  p.note(2, idle());
  for (std::uint32_t random = 0; random < 20; ++random) {
    p.note(2, idle());
    EXPECT_EQ(p.choose({.random = random}), 2U);
  }
}

TEST(placement, waits_for_no_long_prompt_where_another_begins_sooner) {
  placement p;
  auto reading = busy(1);
  reading.pending_rows = 4000;
  p.note(1, reading);
  p.note(2, busy(5));
  const placement_question short_prompt{.prompt_tokens = 100};
  EXPECT_GT(p.predict_us(1, short_prompt), p.predict_us(2, short_prompt));
  EXPECT_EQ(p.choose(short_prompt), 2U);
  // A worker that has the whole prompt cached is worth a wait that is shorter than the prompt takes.
  const auto text = prompt_of(2048);
  const auto keys = keys_of({}, text);
  p.learn(1, {.is_all = true, .added = keys});
  const placement_question kept{.prompt_tokens = 2048, .prefixes = keys};
  EXPECT_EQ(p.choose(kept), 2U);
  reading.pending_rows = 1000;
  p.note(1, reading);
  EXPECT_EQ(p.choose(kept), 1U);
}

TEST(placement, waits_for_no_pass_where_nothing_runs) {
  placement p;
  auto slow = idle();
  slow.pass_us = 200'000;  // the time of its last pass
  p.note(1, slow);
  p.note(2, busy(3));
  EXPECT_LT(p.predict_us(1, {}), p.predict_us(2, {}));
}

TEST(placement, counts_what_it_placed_since_the_last_report) {
  placement p;
  std::map<worker_number, int> placed;
  for (worker_number n = 1; n <= 4; ++n) p.note(n, idle());
  for (std::uint32_t i = 0; i < 32; ++i) ++placed[*p.choose({.prompt_tokens = 100, .random = i * 2654435761U})];
  for (const auto& [n, count] : placed) EXPECT_LE(count, 10) << "worker " << n;
  EXPECT_EQ(placed.size(), 4U);
}

TEST(placement, spreads_a_herd_that_comes_between_two_reports_over_two_gateways) {
  // Both gateways have the same reports and do not know each other's choices.
  placement a, b;
  for (worker_number n = 1; n <= 10; ++n) {
    a.note(n, busy(n == 1 ? 0 : 2));
    b.note(n, busy(n == 1 ? 0 : 2));
  }
  std::map<worker_number, int> placed;
  for (std::uint32_t i = 0; i < 50; ++i) {
    ++placed[*a.choose({.prompt_tokens = 10, .random = i * 2654435761U})];
    ++placed[*b.choose({.prompt_tokens = 10, .random = ~i * 2246822519U})];
  }
  for (const auto& [n, count] : placed) EXPECT_LE(count, 30) << "worker " << n;
}

TEST(placement, keeps_an_affinity_until_waiting_there_costs_more_than_the_prompt) {
  placement p;
  p.note(1, idle());
  p.note(2, idle());
  const auto prompt = prompt_of(2048);
  const auto hashes = keys_of({}, prompt);
  const placement_question q{.affinity = 7, .prompt_tokens = 2048, .prefixes = hashes};
  const auto first = *p.choose(q);
  for (std::uint32_t random = 0; random < 20; ++random) {
    p.note(first, busy(3));
    p.note(3 - first, idle());
    auto again = q;
    again.random = random;
    EXPECT_EQ(p.choose(again), first);
  }
  auto full = idle();
  full.running = 8;
  full.waiting = 8;
  p.note(first, full);
  p.note(3 - first, idle());
  EXPECT_EQ(p.choose(q), 3 - first) << "it has no free slot";
}

TEST(placement, finds_the_worker_with_the_longest_known_beginning) {
  placement p;
  for (worker_number n = 1; n <= 16; ++n) p.note(n, idle());
  auto prompt = prompt_of(4096);
  const auto long_hashes = keys_of({}, prompt);
  const auto home = *p.choose({.prompt_tokens = 4096, .prefixes = long_hashes});
  for (worker_number n = 1; n <= 16; ++n) p.note(n, idle());
  // The same file with another question: most of the beginning is the same.
  for (std::size_t i = 4000; i < prompt.size(); ++i) prompt[i] = 1;
  const auto hashes = keys_of({}, prompt);
  EXPECT_EQ(p.choose({.prompt_tokens = 4096, .prefixes = hashes, .random = 5}), home);
  // For another tenant it is another beginning.
  const auto others = keys_of({9}, prompt);
  int elsewhere = 0;
  for (std::uint32_t random = 0; random < 16; ++random) {
    for (worker_number n = 1; n <= 16; ++n) p.note(n, idle());
    placement fresh = p;
    elsewhere += fresh.choose({.prompt_tokens = 4096, .prefixes = others, .random = random}) != home;
  }
  EXPECT_GT(elsewhere, 8);
}

TEST(placement, weighs_workers_by_what_rows_cost_there) {
  placement p;
  auto slow = idle();
  slow.row_us = 1000;
  slow.running_max = 64;
  auto quick = slow;
  quick.row_us = 100;
  p.note(1, slow);
  p.note(2, quick);
  int fast = 0;
  for (std::uint32_t i = 0; i < 22; ++i) fast += p.choose({.prompt_tokens = 100, .random = i * 2654435761U}) == 2U;
  EXPECT_GE(fast, 18);
}

TEST(placement, forgets_the_longest_known_beyond_its_limits) {
  placement p(placement::limits{.affinities_max = 2, .prefixes_max = 4});
  for (worker_number n = 1; n <= 64; ++n) p.note(n, idle());
  std::map<std::uint64_t, worker_number> homes;
  for (std::uint64_t a = 1; a <= 3; ++a)
    homes[a] = *p.choose({.affinity = a, .random = static_cast<std::uint32_t>(a * 7919)});
  for (worker_number n = 1; n <= 64; ++n) p.note(n, idle());
  EXPECT_EQ(p.choose({.affinity = 3, .random = 1}), homes[3]);
  EXPECT_EQ(p.choose({.affinity = 2, .random = 1}), homes[2]);
}

TEST(placement, believes_what_a_worker_says_that_it_keeps) {
  placement p;
  for (worker_number n = 1; n <= 16; ++n) p.note(n, idle());
  const auto prompt = prompt_of(4096);
  const auto keys = keys_of({}, prompt);
  const placement_question q{.prompt_tokens = 4096, .prefixes = keys};
  const double nowhere = p.predict_us(9, q);
  p.learn(9, {.is_all = true, .added = std::span(keys).first(8)});
  EXPECT_DOUBLE_EQ(nowhere - p.predict_us(9, q), 8 * 256 * 100.0);
  EXPECT_EQ(p.choose(q), 9U) << "although this gateway has placed nothing there";
}

TEST(placement, believes_no_longer_what_a_worker_says_that_it_dropped) {
  placement p;
  p.note(1, idle());
  const auto keys = keys_of({}, prompt_of(1024));
  const placement_question q{.prompt_tokens = 1024, .prefixes = keys};
  const double nowhere = p.predict_us(1, q);
  p.learn(1, {.added = keys});
  p.learn(1, {.dropped = std::span(keys).last(2)});
  EXPECT_DOUBLE_EQ(nowhere - p.predict_us(1, q), 2 * 256 * 100.0);
  p.learn(1, {.is_all = true});
  EXPECT_DOUBLE_EQ(p.predict_us(1, q), nowhere);
}

TEST(placement, counts_what_it_placed_only_until_the_worker_would_have_said_it) {
  placement p(placement::limits{.placed_learns = 3});
  p.note(1, idle());
  const auto keys = keys_of({}, prompt_of(1024));
  const placement_question q{.prompt_tokens = 1024, .prefixes = keys};
  const double nowhere = p.predict_us(1, q);
  EXPECT_EQ(p.choose(q), 1U);
  p.note(1, idle());
  for (int said = 0; said < 3; ++said) {
    EXPECT_LT(p.predict_us(1, q), nowhere);
    p.learn(1, {});
  }
  EXPECT_DOUBLE_EQ(p.predict_us(1, q), nowhere);
}

TEST(placement, spreads_a_prompt_that_many_keep_over_them) {
  placement p;
  const auto keys = keys_of({}, prompt_of(2048));
  for (worker_number n = 1; n <= 40; ++n) {
    p.note(n, busy(n == 1 ? 0 : 1));
    if (n <= 20) p.learn(n, {.added = keys});
  }
  std::map<worker_number, int> placed;
  for (std::uint32_t i = 0; i < 200; ++i) {
    placement another_gateway = p;  // it does not know the other choices
    ++placed[*another_gateway.choose({.prompt_tokens = 2048, .prefixes = keys, .random = i * 2654435761U})];
  }
  for (const auto& [n, count] : placed) {
    EXPECT_LE(n, 20U) << "it has not cached the prompt";
    EXPECT_LE(count, 50) << "worker " << n;
  }
}

TEST(placement, forgets_what_a_worker_kept_that_is_gone) {
  placement p;
  const auto keys = keys_of({}, prompt_of(1024));
  const placement_question q{.prompt_tokens = 1024, .prefixes = keys};
  p.note(1, idle());
  const double nowhere = p.predict_us(1, q);
  p.learn(1, {.added = keys});
  p.remove(1);
  p.note(1, idle());
  EXPECT_DOUBLE_EQ(p.predict_us(1, q), nowhere);
}

TEST(placement, believes_one_worker_so_many_beginnings_only) {
  placement p(placement::limits{.kept_max = 2});
  p.note(1, idle());
  const auto keys = keys_of({}, prompt_of(1024));
  const placement_question q{.prompt_tokens = 1024, .prefixes = keys};
  const double nowhere = p.predict_us(1, q);
  p.learn(1, {.added = keys});
  EXPECT_DOUBLE_EQ(nowhere - p.predict_us(1, q), 2 * 256 * 100.0);
}

}  // namespace
}  // namespace redline::scheduler
