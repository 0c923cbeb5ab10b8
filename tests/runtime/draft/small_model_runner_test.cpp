#include "runtime/draft/small_model_runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "kernels/dispatch.hpp"
#include "runtime/sampling/acceptance.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::draft {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t vocabulary = test::tiny_model::vocabulary;

/// A clock that advances with each reading.
struct slow_clock final : environment {
  [[nodiscard]] instant now() const override { return time += look; }
  [[nodiscard]] std::int64_t unix_seconds() const override { return 0; }
  std::uint64_t random() override { return 0; }
  microseconds look{0};
  mutable instant time{};
};

class small_model_runner_test : public ::testing::Test {
 protected:
  std::unique_ptr<model::transformer> small_model(std::uint32_t pages, std::uint32_t rows_max = 128) {
    const kernels::kernel_table& table = *kernels::process_table().table;
    auto loaded = model::load_weights(*test::make_tiny_model().file(), table, team);
    if (!loaded) throw std::runtime_error(loaded.error().describe());
    auto made = model::transformer::create(*loaded, table, team, {.pages_count = pages, .rows_max = rows_max});
    if (!made) throw std::runtime_error(made.error().describe());
    return std::move(*made);
  }
  small_model_runner runner(std::uint32_t pages = 16, std::uint32_t sessions_max = 8,
                            const environment* clock = nullptr) {
    return small_model_runner(
        {.sessions_max = sessions_max, .prompt_chunk_rows_max = 16, .pages_count = pages},
        {.model = small_model(pages), .end_tokens = {}, .passes = {}, .clock = clock, .chooser = nullptr});
  }
  static model_request ask(std::vector<token> log, draft_options how, std::uint32_t tokens_max = 12) {
    const auto count = static_cast<std::uint32_t>(log.size());
    model_request r;
    r.session = {1};
    r.round = {1};
    r.tail = std::move(log);
    r.prompt_count = count;
    r.tokens_max = tokens_max;
    r.options = how;
    return r;
  }
  static std::vector<model_answer> run(small_model_runner& s) {
    while (s.step()) s.check_integrity();
    s.check_integrity();
    return s.take_answers();
  }
  /// The small model's continuation of a log, token by token, with the probability of each.
  std::vector<std::pair<token, float>> greedy(std::vector<token> log, std::size_t count) {
    const auto m = small_model(16);
    std::vector<std::pair<token, float>> said;
    for (std::size_t i = 0; i < count; ++i) {
      kv::page_pool pool(16);
      kv::page_table table;
      EXPECT_TRUE(table.append(pool, static_cast<std::uint32_t>(log.size())));
      const model::run r{log, 0, table.pieces(), static_cast<std::uint32_t>(log.size() - 1)};
      const auto logits = m->forward({&r, 1});
      const auto next = static_cast<token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      said.emplace_back(next, sampling::top_probability(logits));
      log.push_back(next);
    }
    return said;
  }

  kernels::worker_team team{1};
};

std::vector<std::uint8_t> grades_of(const graded_draft& d) {
  std::vector<std::uint8_t> out;
  for (const graded_segment& run : d.runs) out.insert(out.end(), run.count, run.grade);
  return out;
}

const std::vector<token> prompt = {70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 70, 71};
constexpr draft_options one_after_another{.how = method::assisted, .confidence_min = 0};

TEST_F(small_model_runner_test, assisted_drafts_what_the_model_says_while_it_is_sure) {
  const auto said = greedy(prompt, 12);
  auto s = runner();
  ASSERT_FALSE(s.submit(ask(prompt, one_after_another)));
  const auto all = run(s);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].draft.tokens.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(all[0].draft.tokens[i], said[i].first) << i;
  EXPECT_EQ(all[0].passes, 13u);  // 20 tokens of prompt in two chunks, the second of which gives the first token

  // Drafting stops after the first token that the model is not sure of.
  float least = 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    if (said[i].second < least) least = said[i].second, at = i;
  }
  ASSERT_FALSE(s.submit(ask(prompt, {.how = method::assisted, .confidence_min = least * 1.0001F})));
  EXPECT_EQ(run(s).at(0).draft.tokens.size(), at + 1);
}

TEST_F(small_model_runner_test, blazedit_drafts_the_same_tokens_in_fewer_passes) {
  // The model's own continuation is in the prompt, so lookup proposes what the model will write.
  std::vector<token> log = prompt;
  for (const auto& [t, p] : greedy(prompt, 20)) log.push_back(t);
  log.insert(log.end(), prompt.begin(), prompt.end());
  const auto said = greedy(log, 12);
  auto s = runner();
  ASSERT_FALSE(s.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 12})));
  const auto got = run(s).at(0).draft;
  ASSERT_EQ(got.tokens.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(got.tokens[i], said[i].first) << i;

  ASSERT_FALSE(s.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 1})));
  const auto one_run = run(s).at(0);
  EXPECT_EQ(one_run.passes, 1u) << "the log's KV was not kept";
  EXPECT_LE(one_run.draft.tokens.size(), 9u);
  EXPECT_TRUE(std::equal(one_run.draft.tokens.begin(), one_run.draft.tokens.end(), got.tokens.begin()));
}

TEST_F(small_model_runner_test, automatic_drafts_as_blazedit_does) {
  auto automatic = runner(), blazedit = runner();
  ASSERT_FALSE(automatic.submit(ask(prompt, {.how = method::automatic})));
  ASSERT_FALSE(blazedit.submit(ask(prompt, {.how = method::blazedit})));
  EXPECT_EQ(run(automatic).at(0).draft.tokens, run(blazedit).at(0).draft.tokens);
}

TEST_F(small_model_runner_test, grades_own_tokens_by_their_probability_and_agreed_ones_best) {
  std::vector<token> log = prompt;
  for (const auto& [t, p] : greedy(prompt, 20)) log.push_back(t);
  log.insert(log.end(), prompt.begin(), prompt.end());
  const auto said = greedy(log, 3);
  auto s = runner();
  ASSERT_FALSE(s.submit(ask(log, {.how = method::assisted, .assisted_tokens_max = 3, .confidence_min = 0})));
  const auto own = run(s).at(0).draft;
  ASSERT_EQ(own.tokens.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(grades_of(own)[i], grade_of_probability(said[i].second));
  ASSERT_FALSE(s.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 12})));
  const auto got = run(s).at(0);
  ASSERT_GT(got.draft.tokens.size(), got.passes) << "some tokens were looked up and accepted";
  EXPECT_THAT(grades_of(got.draft), ::testing::Contains(grades_count - 1));
  for (const graded_segment& r : got.draft.runs) EXPECT_EQ(r.from, source::model);
}

TEST_F(small_model_runner_test, ends_a_draft_at_an_end_token) {
  const auto said = greedy(prompt, 3);
  small_model_runner s(
      {.pages_count = 16},
      {.model = small_model(16), .end_tokens = {said[2].first}, .passes = {}, .clock = nullptr, .chooser = nullptr});
  ASSERT_FALSE(s.submit(ask(prompt, one_after_another)));
  const auto got = run(s).at(0).draft.tokens;
  EXPECT_EQ(got.back(), said[2].first);
  EXPECT_LE(got.size(), 3u);
}

TEST_F(small_model_runner_test, says_how_much_of_a_log_it_knows) {
  auto s = runner();
  model_request tail = ask({90, 91}, one_after_another, 1);
  tail.from = 20;
  EXPECT_EQ(s.submit(tail), 0u);
  EXPECT_FALSE(s.step()) << "nothing was queued";
  EXPECT_FALSE(s.submit(ask(prompt, one_after_another, 1)));
  EXPECT_FALSE(s.submit(tail));
  tail.from = 23;
  EXPECT_EQ(s.submit(tail), 22u);
  EXPECT_EQ(run(s).size(), 1u) << "the round that joined later is not lost";
  s.forget({1});
  s.check_integrity();
  EXPECT_EQ(s.submit(tail), 0u);
}

TEST_F(small_model_runner_test, forgets_the_longest_unused_session) {
  auto s = runner(16, 2);
  for (const std::uint64_t session : {1, 2, 1, 3}) {
    auto r = ask(prompt, one_after_another, 1);
    r.session = {session};
    EXPECT_FALSE(s.submit(r));
    run(s);
  }
  auto r = ask({90}, one_after_another, 1);
  r.from = 20;
  r.session = {2};
  EXPECT_EQ(s.submit(r), 0u);
  r.session = {1};
  EXPECT_FALSE(s.submit(r));
}

TEST_F(small_model_runner_test, an_answer_names_the_request_that_it_answers) {
  auto s = runner();
  auto r = ask(prompt, one_after_another, 2);
  r.asker = 77;
  r.session = {5};
  r.round = {9};
  ASSERT_FALSE(s.submit(r));
  const auto got = run(s).at(0);
  EXPECT_EQ(got.asker, 77u);
  EXPECT_EQ(got.session, session_id{5});
  EXPECT_EQ(got.round, round_id{9});
  EXPECT_THAT(s.take_answers(), IsEmpty());
}

TEST_F(small_model_runner_test, a_sessions_newer_request_replaces_the_older_one) {
  auto s = runner();
  ASSERT_FALSE(s.submit(ask(prompt, one_after_another, 8)));
  EXPECT_TRUE(s.step());
  auto r = ask({90}, one_after_another, 2);
  r.from = 20;
  r.round = {2};
  ASSERT_FALSE(s.submit(r));
  const auto got = run(s);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].round, round_id{2});
  EXPECT_EQ(got[0].draft.tokens.size(), 2u);
}

TEST_F(small_model_runner_test, only_reads_along_when_no_draft_is_wanted) {
  for (const method how : {method::assisted, method::blazedit}) {
    auto s = runner();
    const draft_options options{.how = how, .confidence_min = 0, .max_num_run = 1};
    ASSERT_FALSE(s.submit(ask(prompt, options, 0)));
    const auto read = run(s);
    ASSERT_EQ(read.size(), 1u);
    EXPECT_THAT(read[0].draft.tokens, IsEmpty());
    EXPECT_EQ(read[0].passes, 2u);
    EXPECT_EQ(read[0].unread, 0u);
    ASSERT_FALSE(s.submit(ask(prompt, options, 1)));
    EXPECT_EQ(run(s).at(0).passes, 1u) << "the prompt was computed again";
  }
}

TEST_F(small_model_runner_test, tells_automatic_its_costs_and_reads_nothing_for_it) {
  slow_clock clock;
  clock.look = microseconds{500};
  auto s = runner(16, 8, &clock);
  ASSERT_FALSE(s.submit(ask(prompt, {.how = method::automatic}, 0)));
  EXPECT_FALSE(s.step());
  const auto blank = s.take_answers();
  ASSERT_EQ(blank.size(), 1u);
  EXPECT_THAT(blank[0].draft.tokens, IsEmpty());
  EXPECT_FALSE(blank[0].cost.is_known()) << "nothing was timed yet";
  EXPECT_EQ(blank[0].unread, prompt.size());
  EXPECT_EQ(s.passes_count(), 0u);

  auto other = ask(prompt, one_after_another);
  other.session = {2};
  ASSERT_FALSE(s.submit(other));
  run(s);
  const auto passes = s.passes_count();
  ASSERT_FALSE(s.submit(ask(prompt, {.how = method::automatic}, 0)));
  const auto got = run(s).at(0);
  EXPECT_EQ(s.passes_count(), passes);
  EXPECT_EQ(got.cost, s.step_cost_at(prompt.size()));
  EXPECT_TRUE(got.cost.is_known());
}

TEST_F(small_model_runner_test, says_what_it_would_have_to_read_before_it_drafts_again) {
  auto s = runner();
  ASSERT_FALSE(s.submit(ask(prompt, one_after_another, 4)));
  const auto draft = run(s).at(0);
  ASSERT_EQ(draft.draft.tokens.size(), 4u);
  EXPECT_EQ(draft.unread, 0u);
  // The log has three more tokens, the first of which the model has computed for its draft.
  auto r = ask({draft.draft.tokens[0], 200, 201}, {.how = method::automatic}, 0);
  r.from = 20;
  ASSERT_FALSE(s.submit(r));
  EXPECT_EQ(s.take_answers().at(0).unread, 2u);
  r.tail = std::vector<token>(30, 99);
  r.from = 10;
  ASSERT_FALSE(s.submit(r));
  EXPECT_EQ(s.take_answers().at(0).unread, 30u) << "the log was rewritten from there";
}

TEST_F(small_model_runner_test, answers_at_once_where_the_log_has_tokens_that_the_model_lacks) {
  for (const token strange : {static_cast<token>(vocabulary), token{-1}, std::numeric_limits<token>::max()}) {
    auto s = runner();
    auto log = prompt;
    log[4] = strange;
    for (const method how : {method::assisted, method::blazedit, method::automatic}) {
      ASSERT_FALSE(s.submit(ask(log, {.how = how})));
      EXPECT_FALSE(s.step());
      const auto got = s.take_answers();
      ASSERT_EQ(got.size(), 1u);
      EXPECT_THAT(got[0].draft.tokens, IsEmpty());
      EXPECT_EQ(got[0].passes, 0u);
    }
    auto tail = ask({90}, one_after_another, 1);
    tail.from = 20;
    ASSERT_FALSE(s.submit(tail));
    EXPECT_THAT(run(s).at(0).draft.tokens, IsEmpty()) << "it is still in the log";
    // When the log is rewritten without it, the model drafts again.
    ASSERT_FALSE(s.submit(ask(prompt, one_after_another)));
    EXPECT_EQ(run(s).at(0).draft.tokens.size(), 12u);
  }
}

TEST_F(small_model_runner_test, ends_drafts_that_pages_or_context_do_not_hold) {
  const draft_options long_one{.how = method::assisted, .assisted_tokens_max = 100, .confidence_min = 0};
  auto s = runner(1);  // 32 tokens
  ASSERT_FALSE(s.submit(ask(prompt, long_one, 100)));
  const auto got = run(s);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].draft.tokens.size(), 32 - prompt.size() + 1);
  small_model_runner narrow(
      {.pages_count = 16, .context_max = 32},
      {.model = small_model(16), .end_tokens = {}, .passes = {}, .clock = nullptr, .chooser = nullptr});
  EXPECT_EQ(narrow.context_max(), 32u);
  ASSERT_FALSE(narrow.submit(ask(prompt, long_one, 100)));
  const auto kept = run(narrow);
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_FALSE(kept[0].draft.tokens.empty());
  EXPECT_LE(kept[0].draft.tokens.size(), 32u);
}

TEST_F(small_model_runner_test, frees_the_pages_of_sessions_that_are_not_at_work) {
  auto s = runner(2);
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t session : {1, 2, 3}) {
      auto r = ask(prompt, one_after_another, 4);
      r.session = {session};
      ASSERT_FALSE(s.submit(r));
      EXPECT_EQ(run(s).at(0).draft.tokens.size(), 4u);
    }
  }
}

// A log that exceeds the model's context is read in parts, and drafting continues.
TEST_F(small_model_runner_test, drafts_after_logs_longer_than_the_models_context) {
  for (const method how : {method::assisted, method::blazedit}) {
    small_model_runner s(
        {.prompt_chunk_rows_max = 16, .pages_count = 16, .context_max = 96},
        {.model = small_model(16), .end_tokens = {}, .passes = {}, .clock = nullptr, .chooser = nullptr});
    std::vector<token> log;
    std::uint32_t sent = 0;
    std::uint64_t passes_without_reading = 0;
    for (int i = 0; i < 300; ++i) log.push_back(static_cast<token>(40 + i * 7 % 90));
    for (int round = 0; round < 60; ++round) {
      auto r = ask({log.begin() + sent, log.end()}, {.how = how, .confidence_min = 0, .max_num_run = 2}, 4);
      r.from = sent;
      r.prompt_count = 300;
      ASSERT_FALSE(s.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      const auto got = run(s).at(0);
      ASSERT_FALSE(got.draft.tokens.empty()) << "round " << round;
      EXPECT_LE(got.unread, 96u);
      if (got.passes <= 4) ++passes_without_reading;
      const auto& tokens = got.draft.tokens;
      log.insert(log.end(), tokens.begin(), tokens.begin() + 2 * (tokens.size() > 1 ? 1 : 0));
      log.push_back(static_cast<token>(40 + round % 90));
    }
    EXPECT_GT(passes_without_reading, 45U) << "the parts stay cached for a while";
    EXPECT_GT(s.passes_count(), 60U);
  }
}

TEST_F(small_model_runner_test, ends_blazedit_drafts_that_are_too_unsure_for_the_next_pass) {
  slow_clock clock;
  clock.look = microseconds{100};
  const auto passes_at = [&](std::uint32_t round_us, std::uint32_t row_ns) {
    auto s = runner(16, 8, &clock);
    std::uint32_t passes = 0;
    for (int i = 0; i < 2; ++i) {  // the first draft times the passes
      auto r = ask(prompt, {.how = method::blazedit, .max_num_run = 4}, 40);
      r.round_us = round_us;
      r.row_ns = row_ns;
      EXPECT_FALSE(s.submit(r));
      passes = run(s).at(0).passes;
    }
    return passes;
  };
  EXPECT_GE(passes_at(0, 0), 4U) << "nothing is known, so it takes as many as allowed";
  EXPECT_GE(passes_at(1'000'000'000, 0), 4U) << "next to nothing";
  EXPECT_LT(passes_at(100, 100'000), 4U) << "a pass costs at most what it saves";
}

TEST_F(small_model_runner_test, does_not_charge_a_draft_for_reading_the_log) {
  slow_clock clock;
  clock.look = microseconds{1000};
  auto s = runner(16, 8, &clock);
  const draft_options one_pass{.how = method::assisted, .assisted_tokens_max = 1};
  for (int i = 0; i < 8; ++i) {  // passes of one row
    ASSERT_FALSE(s.submit(ask(prompt, one_pass)));
    run(s);
  }
  std::vector<token> longer = prompt;
  for (int i = 0; i < 64; ++i) longer.push_back(static_cast<token>(100 + i));
  ASSERT_FALSE(s.submit(ask(longer, one_pass)));
  const auto reading = run(s).at(0);
  EXPECT_EQ(reading.passes, 4u);
  EXPECT_LE(reading.took_us, 1000u) << "the last pass, of which 15 rows are the log's";
  EXPECT_GT(reading.took_us, 0u);
  auto untimed = runner();
  ASSERT_FALSE(untimed.submit(ask(prompt, one_pass)));
  EXPECT_EQ(run(untimed).at(0).took_us, 0u);
}

TEST_F(small_model_runner_test, any_prices_that_a_peer_may_send_are_lived_with) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  for (const auto& [round_us, row_ns] : {std::pair{0U, most}, {1U, most}, {most, 0U}, {most, most}, {1U, 1U}}) {
    slow_clock clock;
    clock.look = microseconds{10};
    auto s = runner(16, 8, &clock);
    std::vector<token> log = {1, 2, 3, 1, 2};
    for (std::uint32_t sent = 0, round = 0; round < 40; ++round) {
      auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic});
      r.from = sent;
      r.prompt_count = 5;
      r.round_us = round_us;
      r.row_ns = row_ns;
      ASSERT_FALSE(s.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      ASSERT_LE(run(s).at(0).draft.tokens.size(), 12U);
      log.push_back(static_cast<token>(round % 7));
    }
  }
}

TEST_F(small_model_runner_test, replays_what_a_model_of_known_quality_would_choose) {
  struct replay final : sampling::token_chooser {
    std::optional<token> choose(const row& at) const override {
      constexpr token known[] = {72, 73, 99, 98};
      return known[std::min<std::uint64_t>(at.index, 3)];
    }
    float confidence(std::uint64_t, float) const override { return 0.5F; }
  };
  small_model_runner s({.prompt_chunk_rows_max = 16, .pages_count = 16}, {.model = small_model(16),
                                                                          .end_tokens = {},
                                                                          .passes = {},
                                                                          .clock = nullptr,
                                                                          .chooser = std::make_shared<replay>()});
  ASSERT_FALSE(s.submit(ask(prompt, {.how = method::blazedit, .max_num_run = 1})));
  const auto got = run(s).at(0).draft;
  EXPECT_THAT(got.tokens, ElementsAre(72, 73, 99)) << "two that lookup found, and its own";
  EXPECT_THAT(grades_of(got), ElementsAre(grades_count - 1, grades_count - 1, grade_of_probability(0.5F)));
}

// A draft is made from its own session's log; the log of one tenant never contributes to another's draft.
TEST_F(small_model_runner_test, drafts_of_a_session_hold_nothing_of_another) {
  const std::vector<token> shared = {1, 2, 3, 4, 5};
  std::vector<token> secret = shared;
  for (token t = 30; t < 40; ++t) secret.push_back(t);
  secret.insert(secret.end(), shared.begin(), shared.end());
  /// Agrees with every looked-up token, and chooses 0 elsewhere.
  struct credulous final : sampling::token_chooser {
    std::optional<token> choose(const row& at) const override { return at.drafted.value_or(0); }
  };
  for (const method how : {method::blazedit, method::automatic}) {
    small_model_runner s({.pages_count = 16}, {.model = small_model(16),
                                               .end_tokens = {},
                                               .passes = {},
                                               .clock = nullptr,
                                               .chooser = std::make_shared<credulous>()});
    auto first = ask(secret, {.how = how, .max_num_run = 1}, 8);
    first.tenant = {1};
    ASSERT_FALSE(s.submit(first));
    ASSERT_EQ(run(s).at(0).draft.tokens.at(0), 30) << "the first tenant's own";
    for (const std::uint64_t session : {1, 2}) {  // even if the session's number is reused
      auto second = ask(shared, {.how = how, .max_num_run = 1}, 8);
      second.session = {session};
      second.tenant = {2};
      ASSERT_FALSE(s.submit(second));
      EXPECT_THAT(run(s).at(0).draft.tokens, ElementsAre(0)) << session;
    }
  }
}

TEST_F(small_model_runner_test, keeps_nothing_of_a_session_that_comes_back_as_another_tenants) {
  auto s = runner();
  auto first = ask(prompt, one_after_another, 2);
  first.tenant = {1};
  ASSERT_FALSE(s.submit(first));
  auto second = ask({42}, one_after_another, 2);
  second.tenant = {2};
  second.from = 5;
  EXPECT_EQ(s.submit(second), 0u) << "is asked for a log of its own";
  EXPECT_THAT(run(s), IsEmpty()) << "the first one's request is gone";
}

TEST_F(small_model_runner_test, makes_progress_when_the_rows_do_not_hold_all_jobs) {
  small_model_runner s(
      {.prompt_chunk_rows_max = 16, .pages_count = 64},
      {.model = small_model(64, 16), .end_tokens = {}, .passes = {}, .clock = nullptr, .chooser = nullptr});
  for (std::uint64_t session = 1; session <= 5; ++session) {
    auto r = ask(prompt, one_after_another, 3);
    r.session = {session};
    ASSERT_FALSE(s.submit(r));
  }
  const auto got = run(s);
  ASSERT_EQ(got.size(), 5u);
  for (const model_answer& a : got) EXPECT_EQ(a.draft.tokens, got[0].draft.tokens);
}

// Whatever other sessions do, each gets the draft that it would get alone.
TEST_F(small_model_runner_test, drafts_for_many_as_for_one) {
  std::mt19937 random(7);
  for (int world = 0; world < 6; ++world) {
    auto shared = runner(12, 4);
    std::map<std::uint64_t, std::vector<token>> logs;
    for (int round = 0; round < 30; ++round) {
      std::vector<model_request> asked;
      for (std::uint64_t session = 1; session <= 3; ++session) {
        auto& log = logs[session];
        if (log.empty() || random() % 3 != 0) {
          const std::size_t more = log.empty() ? 5 + random() % 30 : random() % 4;
          for (std::size_t i = 0; i < more && log.size() < 90; ++i) log.push_back(static_cast<token>(random() % 12));
        } else {
          log.resize(log.size() - random() % log.size());
        }
        const method how = random() % 2 == 0 ? method::assisted : method::blazedit;
        auto r = ask(log, {.how = how, .confidence_min = 0.05F, .micro_draft_tokens = 6}, 1 + random() % 8);
        r.session = {session};
        ASSERT_FALSE(shared.submit(r));
        asked.push_back(r);
        if (random() % 2 == 0) shared.step();
      }
      std::map<std::uint64_t, std::vector<token>> got;
      for (const auto& a : run(shared)) got[a.session.value] = a.draft.tokens;
      for (const auto& r : asked) {
        auto lonely = runner(12);
        ASSERT_FALSE(lonely.submit(r));
        EXPECT_EQ(got.at(r.session.value), run(lonely).at(0).draft.tokens) << world << " " << round;
      }
    }
  }
}

}  // namespace
}  // namespace redline::draft
