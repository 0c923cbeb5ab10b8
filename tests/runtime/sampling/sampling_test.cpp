#include "runtime/sampling/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "runtime/base/philox.hpp"
#include "runtime/base/portable_math.hpp"
#include "runtime/sampling/row_filter.hpp"
#include "tests/support/sample.hpp"

namespace redline::sampling {
namespace {

const token_context nothing_before{};
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::mt19937& random, std::size_t count, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(count);
  for (float& l : logits) l = normal(random);
  return logits;
}

/// The choice by definition, without shortcuts: ranks every token and draws noise for each.
token plain_choice(const std::vector<float>& logits, const sampling_params& p, std::uint64_t index) {
  std::vector<token> rank(logits.size());
  std::iota(rank.begin(), rank.end(), 0);
  const auto scaled = [&](token t) { return static_cast<double>(logits[static_cast<std::size_t>(t)]) / p.temperature; };
  std::stable_sort(rank.begin(), rank.end(), [&](token a, token b) { return scaled(a) > scaled(b); });
  const double best = scaled(rank[0]);
  if (p.top_k > 0) rank.resize(std::min(rank.size(), static_cast<std::size_t>(p.top_k)));
  double total = 0, sum = 0;
  for (const token t : rank) total += std::exp(scaled(t) - best);
  std::size_t kept = 0;
  while (kept < rank.size() && (kept == 0 || p.top_p >= 1 || sum < static_cast<double>(p.top_p) * total)) {
    sum += std::exp(scaled(rank[kept++]) - best);
  }
  rank.resize(kept);
  std::erase_if(rank, [&](token t) { return p.min_p > 0 && std::exp(scaled(t) - best) < p.min_p && scaled(t) < best; });
  token winner = -1;
  double winning = -infinity;
  for (const token t : rank) {
    const auto words = philox4x32({static_cast<std::uint32_t>(t) / 4, static_cast<std::uint32_t>(index),
                                   static_cast<std::uint32_t>(index >> 32), 0x5265646cu},
                                  {static_cast<std::uint32_t>(p.seed), static_cast<std::uint32_t>(p.seed >> 32)});
    const double u = (words[static_cast<std::size_t>(t % 4)] + 0.5) / 4294967296.0;
    const double noisy = scaled(t) - portable_log(-portable_log(u));
    if (noisy > winning || (noisy == winning && t < winner)) {
      winner = t;
      winning = noisy;
    }
  }
  return winner;
}

TEST(sampling, greedy_takes_the_first_of_the_best_and_ignores_nan) {
  EXPECT_EQ(test::sample(std::vector<float>{nan, 1, 3, 3, 2}, {}, nothing_before), 2);
  EXPECT_EQ(test::sample(std::vector<float>{nan, nan}, {}, nothing_before), 0);
  EXPECT_EQ(test::sample(std::vector<float>{-infinity, -infinity}, {}, nothing_before), 0);
}

TEST(sampling, greedy_is_the_arg_max) {
  std::mt19937 random(2);
  for (int i = 0; i < 200; ++i) {
    const auto logits = random_logits(random, 1 + random() % 500, 3);
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    ASSERT_EQ(test::sample(logits, {}, nothing_before), best);
    ASSERT_EQ(test::sample(logits, {.temperature = 1e-30F, .top_k = 100'000}, nothing_before), best);
    ASSERT_EQ(test::sample(logits, {.temperature = 2, .top_p = 0}, nothing_before), best);
  }
}

TEST(sampling, frequencies_follow_the_softmax) {
  struct {
    std::vector<float> logits;
    sampling_params params;
    double chi_square_max;  // a right distribution exceeds this in 1 of 1000 draws
  } const cases[] = {
      {{1.0F, 0.0F, -1.0F, 2.0F}, {.temperature = 0.7F, .seed = 99}, 16.3},
      {{1.0F, 0.0F, -1.0F, 2.0F, 0.5F, 0.5F, -2.0F, 1.5F}, {.temperature = 1.5F, .seed = 1}, 24.4},
      {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {.temperature = 1, .seed = 2}, 27.9},
      {{3, 2, 1, 0, -1, -2}, {.temperature = 1, .top_k = 4, .seed = 3}, 16.3},
  };
  for (const auto& one : cases) {
    std::vector<double> expected;
    for (std::size_t i = 0; i < one.logits.size(); ++i) {
      const bool kept = one.params.top_k == 0 || static_cast<std::int32_t>(i) < one.params.top_k;
      expected.push_back(kept ? std::exp(one.logits[i] / one.params.temperature) : 0);
    }
    const double total = std::accumulate(expected.begin(), expected.end(), 0.0);
    constexpr std::uint32_t draws = 40'000;
    std::vector<int> seen(expected.size());
    for (std::uint32_t i = 0; i < draws; ++i) {
      ++seen[static_cast<std::size_t>(test::sample(one.logits, one.params, {.count = i}))];
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const double e = expected[i] / total * draws;
      if (e == 0) {
        EXPECT_EQ(seen[i], 0);
      } else {
        chi_square += (seen[i] - e) * (seen[i] - e) / e;
      }
    }
    EXPECT_LT(chi_square, one.chi_square_max);
  }
}

TEST(sampling, shortcuts_do_not_change_the_choice) {
  std::mt19937 random(3);
  const float temperatures[] = {0.05F, 0.5F, 1, 3, 40}, top_ps[] = {1, 1, 0.999F, 0.9F, 0.5F, 0.01F, 0};
  const float min_ps[] = {0, 0, 0.02F, 0.5F, 1};
  const std::int32_t top_ks[] = {0, 0, 1, 3, 50, 5000};
  for (std::uint32_t i = 0; i < 4000; ++i) {
    auto logits = random_logits(random, 1 + random() % 600, 1 + static_cast<float>(random() % 12));
    if (random() % 3 == 0) {  // ties everywhere
      for (float& l : logits) l = std::round(l);
    }
    const sampling_params p{.temperature = temperatures[random() % 5],
                            .top_k = top_ks[random() % 6],
                            .top_p = top_ps[random() % 7],
                            .min_p = min_ps[random() % 5],
                            .seed = random()};
    ASSERT_EQ(test::sample(logits, p, {.count = i}), plain_choice(logits, p, i))
        << "t " << p.temperature << " k " << p.top_k << " p " << p.top_p << " m " << p.min_p;
  }
}

TEST(sampling, shortcuts_do_not_change_the_choice_among_many) {
  std::mt19937 random(8);
  for (std::uint32_t i = 0; i < 40; ++i) {
    auto logits = random_logits(random, 9000 + random() % 9000, 1 + static_cast<float>(random() % 4));
    if (i % 3 == 0) {  // ties, both zeros
      for (float& l : logits) l = std::round(l * 8) / 8;
    }
    if (i % 4 == 0) {
      for (std::size_t k = 0; k < logits.size(); k += 2) logits[k] = -infinity;
    }
    const std::int32_t top_ks[] = {0, 20, 1000, 8000, 20'000};
    const float top_ps[] = {1, 0.9F, 0.999999F};
    const sampling_params p{.temperature = i % 2 == 0 ? 2.0F : 0.7F,
                            .top_k = top_ks[random() % 5],
                            .top_p = top_ps[random() % 3],
                            .min_p = random() % 3 == 0 ? 0.001F : 0,
                            .seed = random()};
    ASSERT_EQ(test::sample(logits, p, {.count = i}), plain_choice(logits, p, i))
        << "t " << p.temperature << " k " << p.top_k << " p " << p.top_p << " m " << p.min_p;
  }
}

TEST(sampling, depends_on_seed_and_index_only) {
  std::mt19937 random(4);
  const auto logits = random_logits(random, 1000, 2);
  std::vector<token> draws;
  for (std::uint32_t i = 0; i < 60; ++i)
    draws.push_back(test::sample(logits, {.temperature = 1, .seed = 5}, {.count = i}));
  for (std::uint32_t i = 60; i-- > 0;)
    EXPECT_EQ(test::sample(logits, {.temperature = 1, .seed = 5}, {.count = i}), draws[i]);
  std::vector<token> distinct = draws;
  std::sort(distinct.begin(), distinct.end());
  EXPECT_GT(std::unique(distinct.begin(), distinct.end()) - distinct.begin(), 20);
  int same = 0;
  for (std::uint32_t i = 0; i < 60; ++i)
    same += test::sample(logits, {.temperature = 1, .seed = 6}, {.count = i}) == draws[i];
  EXPECT_LT(same, 20);
}

TEST(sampling, a_similar_distribution_mostly_gives_the_same_token) {
  std::mt19937 random(6);
  int same = 0;
  for (std::uint32_t i = 0; i < 500; ++i) {
    const auto target = random_logits(random, 200, 2);
    auto draft = target;
    for (float& l : draft) l += std::normal_distribution<float>(0, 0.1F)(random);
    same +=
        test::sample(target, {.temperature = 1}, {.count = i}) == test::sample(draft, {.temperature = 1}, {.count = i});
  }
  EXPECT_GT(same, 420);
}

TEST(sampling, truncations_keep_only_what_they_allow) {
  const std::vector<float> logits{0, 3, 3, 2, -5};
  for (std::uint32_t i = 0; i < 200; ++i) {
    EXPECT_EQ(test::sample(logits, {.temperature = 5, .top_k = 1}, {.count = i}), 1) << "ties go to the lower id";
    EXPECT_EQ(test::sample(logits, {.temperature = 5, .top_p = 0}, {.count = i}), 1);
    EXPECT_EQ(test::sample(logits, {.temperature = 1, .top_p = 0.1F}, {.count = i}), 1);
    EXPECT_NE(test::sample(logits, {.temperature = 5, .top_k = 3}, {.count = i}), 0);
    const token t = test::sample(logits, {.temperature = 1, .min_p = 0.9F}, {.count = i});
    EXPECT_TRUE(t == 1 || t == 2);
  }
}

TEST(sampling, survives_hostile_logits_and_parameters) {
  const std::vector<std::vector<float>> rows = {
      {nan},           {infinity, 1}, {-infinity, nan, -infinity}, {nan, 1, nan, 2},
      {3e38F, -3e38F}, {0, 0},        {infinity, infinity, nan}};
  const float values[] = {-1, 0, 1e-38F, 0.5F, 1, 2, 1e38F, infinity, nan};
  const std::vector<token> log{0, 1, 5, -3};
  for (const auto& row : rows) {
    for (const float a : values) {
      for (const float b : values) {
        for (const std::int32_t k : {-1, 0, 1, 1000}) {
          const sampling_params p{.temperature = a,
                                  .top_k = k,
                                  .top_p = b,
                                  .min_p = b,
                                  .repetition_penalty = b,
                                  .presence_penalty = a,
                                  .frequency_penalty = b,
                                  .logit_bias = {{0, -infinity}, {1, a}},
                                  .banned_early = {0, 99},
                                  .banned_before = 2};
          for (const token_context& before : {token_context{log, 4, 1}, token_context{}}) {
            const token t = test::sample(row, p, before);
            ASSERT_TRUE(t >= 0 && static_cast<std::size_t>(t) < row.size());
            const token plain = test::sample(row, {.temperature = a, .top_k = k, .top_p = b, .min_p = a}, before);
            ASSERT_TRUE(plain >= 0 && static_cast<std::size_t>(plain) < row.size());
          }
        }
      }
    }
    (void)top_probability(row);
    EXPECT_LE(logprob_of(row, 0, 5).top.size(), row.size());
  }
}

TEST(sampling, a_forbidden_token_is_never_chosen) {
  const std::vector<float> logits{5, 1, 1};
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_NE(test::sample(logits, {.temperature = 2, .logit_bias = {{0, -infinity}}}, {.count = i}), 0);
    EXPECT_NE(test::sample(logits, {.temperature = 2, .top_p = 0.9F, .logit_bias = {{0, -infinity}}}, {.count = i}), 0);
    EXPECT_NE(test::sample(logits, {.temperature = 2, .banned_early = {0}, .banned_before = 1000}, {.count = i}), 0);
  }
}

TEST(sampling, penalties_and_bans_look_at_the_right_tokens) {
  const std::vector<float> logits{2, 1.9F, 1.8F};
  const std::vector<token> log{0, 1};
  const token_context before{log, 2, 1};  // token 0 is the prompt, token 1 the output
  EXPECT_EQ(test::sample(logits, {.presence_penalty = 1}, before), 0) << "the prompt is not penalized";
  EXPECT_EQ(test::sample(logits, {.repetition_penalty = 2}, before), 2) << "the prompt is penalized";
  EXPECT_EQ(test::sample(logits, {.presence_penalty = 1}, before, std::vector<token>{0}), 2);
  EXPECT_EQ(test::sample(logits, {.logit_bias = {{2, 5}, {-1, 100}, {99, 100}}}, before), 2);
  const sampling_params banned{.banned_early = {0}, .banned_before = 4};
  EXPECT_EQ(test::sample(logits, banned, before), 1);
  EXPECT_EQ(test::sample(logits, banned, before, std::vector<token>{1, 1}), 0);
}

TEST(sampling, only_allowed_tokens_are_chosen_even_when_bans_leave_none) {
  const std::vector<float> logits = {1, 5, 3, 4};
  sampling_params p;
  p.allowed = {0, 2};
  EXPECT_EQ(row_sampler(p, nothing_before).choose(logits), 2);
  p.logit_bias = {{2, -100}};
  EXPECT_EQ(row_sampler(p, nothing_before).choose(logits), 0);
  p.temperature = 1;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    p.seed = seed;
    const token chosen = row_sampler(p, nothing_before).choose(logits);
    EXPECT_TRUE(chosen == 0 || chosen == 2);
  }
  p.banned_sequences = {{0}, {2}};
  EXPECT_EQ(row_sampler(p, nothing_before).choose(logits), 0);
  p.allowed = {-5, 99};  // a peer may send these
  EXPECT_EQ(row_sampler(p, nothing_before).choose(logits), 0);
}

TEST(sampling, a_banned_sequence_is_never_completed_by_the_output) {
  const std::vector<float> logits = {1, 5, 3, 4};
  sampling_params p;
  p.banned_sequences = {{3, 1}, {2}};
  const auto choose = [&](std::vector<token> log, std::uint32_t prompt_count) {
    return row_sampler(p, {log, log.size(), prompt_count}).choose(logits);
  };
  EXPECT_EQ(choose({0, 3}, 0), 3) << "1 may not follow 3, nor 2 anything";
  EXPECT_EQ(choose({3, 0}, 0), 1);
  EXPECT_EQ(choose({0, 3}, 2), 1) << "the prompt's end is not output";
  const std::vector<token> log = {0};
  row_sampler rows(p, {log, 1, 0});
  rows.emit(3);
  EXPECT_EQ(rows.choose(logits), 3) << "accepted draft tokens count as well";
  rows.emit(0);
  EXPECT_EQ(rows.choose(logits), 1);
}

TEST(sampling, frequency_grows_with_each_occurrence_and_repetition_does_not) {
  const std::vector<float> logits{3, 2};
  const std::vector<token> log{0, 0, 0};
  EXPECT_EQ(test::sample(logits, {.frequency_penalty = 0.4F}, {log, 3, 0}), 1) << "3 - 3 * 0.4 < 2";
  EXPECT_EQ(test::sample(logits, {.frequency_penalty = 0.4F}, {log, 3, 1}), 0) << "two in the output";
  EXPECT_EQ(test::sample(logits, {.repetition_penalty = 1.4F}, {log, 3, 0}), 0)
      << "counted once, however often it occurs";
  EXPECT_EQ(test::sample(std::vector<float>{-1, -1.5F}, {.repetition_penalty = 2}, {log, 3, 0}), 1)
      << "negative logits fall";
}

TEST(sampling, greedy_takes_the_first_of_the_greatest_whatever_the_size) {
  std::mt19937 random(3);
  for (std::size_t size = 1; size < 80; ++size) {
    for (int i = 0; i < 20; ++i) {
      std::vector<float> logits(size);
      for (float& l : logits) {
        const auto kind = random() % 8;
        l = kind == 0 ? std::nanf("") : kind == 1 ? -infinity : static_cast<float>(random() % 4);
      }
      std::size_t first = 0;
      float best = -infinity;
      for (std::size_t k = 0; k < size; ++k) {
        if (logits[k] > best) best = logits[first = k];
      }
      ASSERT_EQ(test::sample(logits, {}, {}), static_cast<token>(first)) << size;
    }
  }
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
  EXPECT_TRUE(logprob_of(logits, 1, 0).top.empty());
  EXPECT_EQ(logprob_of(logits, 77, 9).top.size(), 3u);
  EXPECT_EQ(logprob_of(logits, 77, 0).logprob, -infinity);
}

TEST(sampling, log_probabilities_sum_to_one_and_come_in_rank) {
  std::mt19937 random(9);
  for (int i = 0; i < 50; ++i) {
    const auto logits = random_logits(random, 300, 5);
    const auto all = logprob_of(logits, 0, 300).top;
    double sum = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      sum += std::exp(all[k].logprob);
      ASSERT_GE(all[k > 0 ? k - 1 : 0].logprob, all[k].logprob);
    }
    ASSERT_NEAR(sum, 1, 1e-4);
    ASSERT_NEAR(std::exp(all[0].logprob), top_probability(logits), 1e-6);
  }
}

TEST(sampling, a_probability_counts_the_allowed_tokens_only) {
  std::mt19937 random(21);
  for (int trial = 0; trial < 100; ++trial) {
    const auto logits = random_logits(random, 70, 3);
    std::vector<std::uint64_t> allowed{~std::uint64_t{0} << trial % 60, 0x2f};
    const auto id = static_cast<token>(random() % logits.size());
    double sum = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (allows(allowed, static_cast<token>(i))) sum += std::exp(static_cast<double>(logits[i]));
    }
    const double share =
        allows(allowed, id) ? std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)])) / sum : 0;
    EXPECT_TRUE(has_probability(logits, id, static_cast<float>(share * 0.999), allowed));
    EXPECT_FALSE(has_probability(logits, id, static_cast<float>(share * 1.001 + 1e-30), allowed));
  }
  const std::vector<float> row{0, nan, 1};
  EXPECT_FALSE(has_probability(row, 1, 1e-30F, {}));
  EXPECT_FALSE(has_probability(row, 3, 0, {})) << "not in the vocabulary";
  EXPECT_FALSE(has_probability(std::vector<float>{nan, -infinity}, 0, 0, {}));
}

TEST(sampling, a_best_token_that_the_mask_allows_is_the_choice) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 200; ++trial) {
    auto logits = random_logits(random, 130, 2);
    for (float& l : logits) l = std::round(l);  // ties
    const std::vector<std::uint64_t> allowed{random() | std::uint64_t{random()} << 32, random(), random()};
    const sampling_params greedy{};
    EXPECT_EQ(row_sampler(greedy, nothing_before).choose(logits, allowed, best_of(logits)),
              row_sampler(greedy, nothing_before).choose(logits, allowed));
  }
}

TEST(token_counter, counts_what_is_new_of_a_log_that_grows_as_counting_all_of_it_does) {
  std::mt19937 random(3);
  for (const bool with_prompt : {false, true}) {
    token_counter growing;
    std::vector<token> log;
    for (int round = 0; round < 40; ++round) {
      if (round % 11 == 10) {
        log.resize(log.size() / 2);
        growing.forget();
      }
      for (std::size_t n = random() % 5; n > 0; --n) log.push_back(static_cast<token>(random() % 7));
      const auto& counts = growing.count(log, 6, with_prompt);
      EXPECT_EQ(growing.counted(), log.size());
      EXPECT_EQ(counts, token_counter().count(log, 6, with_prompt));
      std::map<token, std::uint32_t> expected;
      for (std::size_t i = 0; i < log.size(); ++i) {
        if (i >= 6 || with_prompt) expected[log[i]] += i >= 6 ? 1 : 0;
      }
      EXPECT_EQ((std::map<token, std::uint32_t>(counts.begin(), counts.end())), expected);
    }
  }
}

TEST(row_sampler, chooses_by_counts_as_by_the_log_that_they_are_of) {
  std::mt19937 random(4);
  for (int world = 0; world < 200; ++world) {
    sampling_params p{.temperature = 1, .seed = random()};
    p.repetition_penalty = world % 2 == 0 ? 1 : 1.3F;
    p.presence_penalty = 0.4F;
    p.frequency_penalty = 0.2F;
    if (world % 3 == 0) p.banned_sequences = {{1, 2, 3}, {4}, {0, 1}};
    std::vector<token> log(random() % 30);
    for (token& t : log) t = static_cast<token>(random() % 6);
    const std::uint32_t prompt = random() % 10;
    const auto output = std::span(log).subspan(std::min<std::size_t>(prompt, log.size()));
    const auto latest = output.last(std::min(output.size(), p.sequences_reach()));
    token_counter counter;
    const auto& counts = counter.count(log, prompt, p.repetition_penalty != 1);
    row_sampler by_log(p, {log, log.size(), prompt});
    row_sampler by_counts(p, {.log = latest, .count = log.size(), .counts = counts});
    for (int row = 0; row < 4; ++row) {
      std::vector<float> logits(8);
      for (float& x : logits) x = static_cast<float>(random() % 1000) / 250;
      const token chosen = by_log.choose(logits);
      ASSERT_EQ(by_counts.choose(logits), chosen) << world << ", row " << row;
      by_log.emit(chosen);
      by_counts.emit(chosen);
    }
  }
}

}  // namespace
}  // namespace redline::sampling
