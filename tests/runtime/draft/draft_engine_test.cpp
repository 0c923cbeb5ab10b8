#include "runtime/draft/draft_engine.hpp"

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

class draft_engine_test : public ::testing::Test {
 protected:
  std::unique_ptr<model::transformer> small_model(std::uint32_t pages) {
    const kernels::kernel_table& table = *kernels::process_table().table;
    auto loaded = model::load_weights(*test::make_tiny_model().file(), table, team);
    if (!loaded) throw std::runtime_error(loaded.error().describe());
    auto made = model::transformer::create(*loaded, table, team, {.pages_count = pages, .rows_max = 128});
    if (!made) throw std::runtime_error(made.error().describe());
    return std::move(*made);
  }
  draft_engine engine(std::uint32_t pages = 16, std::uint32_t sessions_max = 8, const environment* clock = nullptr) {
    return draft_engine({.sessions_max = sessions_max, .model = {.prompt_chunk_rows_max = 16, .pages_count = pages}},
                        {.model = small_model(pages), .clock = clock});
  }
  static draft_request ask(std::vector<token> log, draft_options how, std::uint32_t tokens_max = 12) {
    const auto count = static_cast<std::uint32_t>(log.size());
    return {.session = {1},
            .round = {1},
            .tail = std::move(log),
            .prompt_count = count,
            .tokens_max = tokens_max,
            .options = how};
  }
  static std::vector<draft_answer> run(draft_engine& e) {
    while (e.step()) e.check_integrity();
    e.check_integrity();
    return e.take_answers();
  }
  /// What the small model says behind a log, one token after another, with the probability of each.
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
      said.emplace_back(next, model::top_probability(logits));
      log.push_back(next);
    }
    return said;
  }

  kernels::worker_team team{1};
};

std::vector<std::pair<source, std::uint32_t>> by_source(const std::vector<draft_part>& parts) {
  std::vector<std::pair<source, std::uint32_t>> out;
  for (const draft_part& p : parts) {
    if (out.empty() || out.back().first != p.from) out.emplace_back(p.from, 0);
    out.back().second += p.count;
  }
  return out;
}

std::vector<double> chances_of(const draft_answer& a) {
  std::vector<double> out;
  for (const draft_part& p : a.parts) out.insert(out.end(), p.count, p.chance());
  return out;
}

const std::vector<token> prompt = {70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 70, 71};

TEST_F(draft_engine_test, looks_up_without_a_model) {
  draft_engine e;
  EXPECT_FALSE(e.has_model());
  for (const method how : {method::lookup, method::assisted, method::blazedit}) {
    EXPECT_FALSE(e.submit(ask(prompt, {.how = how, .lookup_tokens_max = 3})));
    const auto got = e.take_answers();
    ASSERT_EQ(got.size(), 1u);
    EXPECT_THAT(got[0].tokens, ElementsAre(72, 73, 74));
    EXPECT_EQ(got[0].passes, 0u);
  }
  EXPECT_FALSE(e.submit(ask(prompt, {.how = method::regular})));
  EXPECT_THAT(e.take_answers().at(0).tokens, IsEmpty());
}

TEST_F(draft_engine_test, assisted_drafts_what_the_small_model_says_while_it_is_sure) {
  const auto said = greedy(prompt, 12);
  auto e = engine();
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = 0})));
  const auto all = run(e);
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].tokens.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(all[0].tokens[i], said[i].first) << i;
  EXPECT_EQ(all[0].passes, 13u);  // 20 tokens of prompt in two chunks, the second gives the first token

  // Stops behind the first token it is not sure of.
  float least = 1;
  std::size_t at = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    if (said[i].second < least) least = said[i].second, at = i;
  }
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = least * 1.0001F})));
  EXPECT_EQ(run(e).at(0).tokens.size(), at + 1);
}

TEST_F(draft_engine_test, blazedit_drafts_the_same_tokens_in_fewer_passes) {
  // The model's own continuation is in the prompt, so lookup proposes what the model will say.
  std::vector<token> log = prompt;
  for (const auto& [t, p] : greedy(prompt, 20)) log.push_back(t);
  log.insert(log.end(), prompt.begin(), prompt.end());
  const auto said = greedy(log, 12);
  auto e = engine();
  ASSERT_FALSE(e.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 12})));
  const auto got = run(e).at(0);
  ASSERT_EQ(got.tokens.size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(got.tokens[i], said[i].first) << i;

  ASSERT_FALSE(e.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 1})));
  const auto one_run = run(e).at(0);
  EXPECT_EQ(one_run.passes, 1u) << "the log's KV was not kept";
  EXPECT_LE(one_run.tokens.size(), 9u);
  EXPECT_TRUE(std::equal(one_run.tokens.begin(), one_run.tokens.end(), got.tokens.begin()));
}

TEST_F(draft_engine_test, ends_a_draft_at_an_end_token) {
  const auto said = greedy(prompt, 3);
  draft_engine e({.model = {.pages_count = 16}}, {.model = small_model(16), .end_tokens = {said[2].first}});
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = 0})));
  const auto got = run(e).at(0);
  EXPECT_EQ(got.tokens.back(), said[2].first);
  EXPECT_LE(got.tokens.size(), 3u);
}

TEST_F(draft_engine_test, says_how_much_of_a_log_it_knows) {
  auto e = engine();
  draft_request tail = ask({90, 91}, {.how = method::lookup});
  tail.from = 20;
  EXPECT_EQ(e.submit(tail), 0u);
  EXPECT_FALSE(e.submit(ask(prompt, {.how = method::lookup})));
  EXPECT_FALSE(e.submit(tail));
  tail.from = 23;
  EXPECT_EQ(e.submit(tail), 22u);
  e.forget({1});
  EXPECT_EQ(e.submit(tail), 0u);
}

TEST_F(draft_engine_test, forgets_the_longest_unused_session) {
  auto e = engine(16, 2);
  for (const std::uint64_t session : {1, 2, 1, 3}) {
    auto r = ask(prompt, {.how = method::lookup});
    r.session = {session};
    EXPECT_FALSE(e.submit(r));
  }
  auto r = ask({90}, {.how = method::lookup});
  r.from = 20;
  r.session = {2};
  EXPECT_EQ(e.submit(r), 0u);
  r.session = {1};
  EXPECT_FALSE(e.submit(r));
}

TEST_F(draft_engine_test, only_reads_along_when_no_draft_is_wanted) {
  auto e = engine();
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = 0}, 0)));
  const auto read = run(e);
  ASSERT_EQ(read.size(), 1u);
  EXPECT_THAT(read[0].tokens, IsEmpty());
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = 0}, 1)));
  EXPECT_EQ(run(e).at(0).passes, 1u) << "the prompt was computed again";
}

TEST_F(draft_engine_test, looks_up_behind_tokens_the_model_does_not_have) {
  for (const token strange : {static_cast<token>(vocabulary), token{-1}, std::numeric_limits<token>::max()}) {
    auto e = engine();
    auto log = prompt;
    log[4] = strange;
    for (const method how : {method::assisted, method::blazedit}) {
      ASSERT_FALSE(e.submit(ask(log, {.how = how, .lookup_tokens_max = 2})));
      EXPECT_FALSE(e.step());
      EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(72, 73));
    }
    // When the log is rewritten without it, the model drafts again.
    ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .confidence_min = 0})));
    EXPECT_GT(run(e).at(0).passes, 0u);
  }
}

TEST_F(draft_engine_test, ends_drafts_that_pages_or_context_do_not_hold) {
  auto e = engine(1);  // 32 tokens
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::assisted, .assisted_tokens_max = 100, .confidence_min = 0}, 100)));
  const auto got = run(e);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].tokens.size(), 32 - prompt.size() + 1);
}

// A log that the model's context does not hold is read in parts, and drafts go on.
TEST_F(draft_engine_test, drafts_behind_logs_longer_than_the_models_context) {
  for (const method how : {method::assisted, method::blazedit}) {
    draft_engine e({.model = {.prompt_chunk_rows_max = 16, .pages_count = 16, .context_max = 96}},
                   {.model = small_model(16)});
    std::vector<token> log;
    std::uint32_t sent = 0;
    std::uint64_t passes = 0, passes_without_reading = 0;
    for (int i = 0; i < 300; ++i) log.push_back(static_cast<token>(40 + i * 7 % 90));
    for (int round = 0; round < 60; ++round) {
      auto r = ask({log.begin() + sent, log.end()}, {.how = how, .confidence_min = 0, .max_num_run = 2}, 4);
      r.from = sent;
      r.prompt_count = 300;
      ASSERT_FALSE(e.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      const auto got = run(e).at(0);
      ASSERT_FALSE(got.tokens.empty()) << "round " << round;
      if (got.passes <= 4) ++passes_without_reading;
      passes = e.passes_count();
      log.insert(log.end(), got.tokens.begin(), got.tokens.begin() + 2 * (got.tokens.size() > 1 ? 1 : 0));
      log.push_back(static_cast<token>(40 + round % 90));
    }
    EXPECT_GT(passes_without_reading, 45U) << "the parts stay for a while";
    EXPECT_GT(passes, 60U);
  }
}

TEST_F(draft_engine_test, gives_tokens_the_model_agreed_to_better_chances_than_its_own_unsure_ones) {
  std::vector<token> log = prompt;
  for (const auto& [t, p] : greedy(prompt, 20)) log.push_back(t);
  log.insert(log.end(), prompt.begin(), prompt.end());
  const auto said = greedy(log, 3);
  auto e = engine();
  ASSERT_FALSE(e.submit(ask(log, {.how = method::assisted, .assisted_tokens_max = 3, .confidence_min = 0})));
  const acceptance_record first;
  const auto chances = chances_of(run(e).at(0));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(chances[i], first.chance(source::model, grade_of_probability(said[i].second), i, nullptr), 1e-4);
  }
  ASSERT_FALSE(e.submit(ask(log, {.how = method::blazedit, .micro_draft_tokens = 8, .max_num_run = 12})));
  const auto got = run(e).at(0);
  ASSERT_GT(got.tokens.size(), got.passes) << "something was looked up, and agreed to";
  const auto agreed = first.chance(source::model, grades_count - 1, 0, nullptr);
  EXPECT_THAT(chances_of(got), ::testing::Contains(::testing::DoubleNear(agreed, 1e-4)));
}

TEST_F(draft_engine_test, ends_blazedit_drafts_that_are_too_unsure_for_the_next_pass) {
  struct at_rest final : environment {
    mutable std::int64_t us = 0;
    instant now() const override { return instant{microseconds{us += 100}}; }  // a pass takes 100 us
    std::int64_t unix_seconds() const override { return 0; }
    std::uint64_t random() override { return 0; }
  } clock;
  const auto passes_at = [&](cost::step_cost step) {
    auto e = engine(16, 8, &clock);
    for (int i = 0; i < 2; ++i) {  // the first draft times the passes
      auto r = ask(prompt, {.how = method::blazedit, .max_num_run = 4}, 40);
      r.step = step;
      EXPECT_FALSE(e.submit(r));
    }
    return run(e).at(0).passes;
  };
  EXPECT_GE(passes_at({}), 4U) << "nothing is known: as many as there may be";
  EXPECT_GE(passes_at({.pass_us = 1'000'000'000, .row_ns = 0}), 4U) << "next to nothing";
  EXPECT_LT(passes_at({.pass_us = 100, .row_ns = 100'000}), 4U) << "a pass takes what it brings at most";
}

TEST_F(draft_engine_test, replays_what_a_model_of_known_quality_would_choose) {
  struct replay final : model::token_chooser {
    std::optional<token> choose(const row& at) const override {
      constexpr token known[] = {72, 73, 99, 98};
      return known[std::min<std::uint64_t>(at.index, 3)];
    }
    float confidence(std::uint64_t, float) const override { return 0.5F; }
  };
  draft_engine e({.model = {.prompt_chunk_rows_max = 16, .pages_count = 16}},
                 {.model = small_model(16), .chooser = std::make_shared<replay>()});
  ASSERT_FALSE(e.submit(ask(prompt, {.how = method::blazedit, .max_num_run = 1})));
  const auto got = run(e).at(0);
  EXPECT_THAT(got.tokens, ElementsAre(72, 73, 99)) << "two that lookup found, and its own";
  const auto chances = chances_of(got);
  EXPECT_EQ(chances[0], chances[1]);
  EXPECT_GT(chances[1], chances[2] + 0.1);
}

// Predictions. The log's own tokens are 1 to 9, the prediction's 40 and up.

draft_request ask_with(std::vector<token> prompt_tokens, const std::vector<token>& answer,
                       std::vector<token> prediction, draft_options how, std::uint32_t tokens_max = 12) {
  const auto count = static_cast<std::uint32_t>(prompt_tokens.size());
  prompt_tokens.insert(prompt_tokens.end(), answer.begin(), answer.end());
  return {.session = {1},
          .round = {1},
          .tail = std::move(prompt_tokens),
          .prediction = std::move(prediction),
          .prompt_count = count,
          .tokens_max = tokens_max,
          .options = how};
}
const std::vector<token> predicted = {40, 41, 42, 43, 44, 45, 46, 47};

TEST_F(draft_engine_test, drafts_from_the_prediction_behind_what_was_said_of_it) {
  for (const method how : {method::prediction, method::automatic}) {
    draft_engine e;
    ASSERT_FALSE(e.submit(ask_with({1, 2, 3}, {40, 41}, predicted, {.how = how}, 3)));
    const auto got = e.take_answers().at(0);
    EXPECT_THAT(got.tokens, ElementsAre(42, 43, 44));
    EXPECT_THAT(by_source(got.parts), ElementsAre(std::pair{source::prediction, 3u}));
    // The log goes on; the prediction is known from before.
    draft_request next = ask_with({42, 90, 44}, {}, {}, {.how = how}, 3);
    next.prompt_count = 3;
    next.from = 5;
    ASSERT_FALSE(e.submit(next));
    EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(45, 46, 47));
  }
  for (const method how : {method::lookup, method::regular}) {
    draft_engine e;
    ASSERT_FALSE(e.submit(ask_with({1, 2, 3}, {40, 41}, predicted, {.how = how})));
    EXPECT_THAT(e.take_answers().at(0).tokens, IsEmpty()) << "did not ask for it";
  }
}

TEST_F(draft_engine_test, reads_the_prediction_as_the_answer_and_not_as_the_prompt) {
  draft_engine e;
  // The prompt ends with what stands before 46; the answer has said nothing yet.
  ASSERT_FALSE(e.submit(ask_with({44, 45}, {}, predicted, {.how = method::prediction}, 2)));
  EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(40, 41));
}

TEST_F(draft_engine_test, looks_up_where_the_prediction_knows_less) {
  for (const method how : {method::prediction, method::automatic}) {
    draft_engine e;
    ASSERT_FALSE(e.submit(ask_with({1, 2, 3, 4, 5, 6, 7}, {3, 4, 5}, predicted, {.how = how}, 2)));
    const auto got = e.take_answers().at(0);
    EXPECT_THAT(got.tokens, ElementsAre(6, 7));
    EXPECT_THAT(by_source(got.parts), ElementsAre(std::pair{source::lookup, 2u}));
    ASSERT_FALSE(e.submit(ask_with({1, 2, 3}, {}, {}, {.how = how})));
    EXPECT_THAT(e.take_answers().at(0).parts, IsEmpty());
  }
}

TEST_F(draft_engine_test, goes_on_behind_the_end_of_the_prediction_with_what_is_looked_up) {
  for (const method how : {method::prediction, method::automatic}) {
    draft_engine e;
    ASSERT_FALSE(e.submit(ask_with({40, 41, 42, 8, 9}, {40, 41}, {40, 41, 42}, {.how = how}, 3)));
    const auto got = e.take_answers().at(0);
    EXPECT_THAT(got.tokens, ElementsAre(42, 8, 9));
    EXPECT_THAT(by_source(got.parts), ElementsAre(std::pair{source::prediction, 1u}, std::pair{source::lookup, 2u}));
  }
}

TEST_F(draft_engine_test, asks_for_the_log_and_with_it_for_the_prediction_after_a_restart) {
  draft_engine fresh;
  draft_request tail = ask_with({42}, {}, {}, {.how = method::prediction}, 2);
  tail.from = 5;
  tail.prompt_count = 3;
  EXPECT_EQ(fresh.submit(tail), 0u);
  ASSERT_FALSE(fresh.submit(ask_with({1, 2, 3}, {40, 41, 42}, predicted, {.how = method::prediction}, 2)));
  EXPECT_THAT(fresh.take_answers().at(0).tokens, ElementsAre(43, 44));
  // A log that begins again is another reading of the same answer.
  ASSERT_FALSE(fresh.submit(ask_with({1, 2, 3}, {40}, predicted, {.how = method::prediction}, 2)));
  EXPECT_THAT(fresh.take_answers().at(0).tokens, ElementsAre(41, 42));
}

TEST_F(draft_engine_test, follows_a_log_that_is_sentagain_from_an_earlier_token) {
  draft_engine e;
  ASSERT_FALSE(e.submit(ask_with({1, 2, 3}, {40, 41, 42, 43}, predicted, {.how = method::prediction}, 2)));
  EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(44, 45));
  draft_request again = ask_with({41, 42}, {}, {}, {.how = method::prediction}, 2);
  again.from = 4;
  again.prompt_count = 3;
  ASSERT_FALSE(e.submit(again));
  EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(43, 44));
}

TEST_F(draft_engine_test, never_shows_the_small_model_a_predicted_token) {
  // Tokens without an embedding would be read outside of the table.
  const std::vector<token> strange = {vocabulary, std::numeric_limits<token>::max(), -1};
  for (const method how : {method::prediction, method::automatic, method::blazedit, method::assisted}) {
    auto e = engine();
    ASSERT_FALSE(e.submit(ask_with(prompt, {}, strange, {.how = how, .confidence_min = 0}, 8)));
    run(e);
  }
}

TEST_F(draft_engine_test, automatic_drafts_are_ready_at_once_where_the_text_says_enough) {
  auto e = engine();
  ASSERT_FALSE(e.submit(ask_with({1, 2, 3}, {40, 41, 42, 43}, predicted, {.how = method::automatic}, 3)));
  EXPECT_THAT(e.take_answers().at(0).tokens, ElementsAre(44, 45, 46));
  EXPECT_FALSE(e.step()) << "the model has nothing to do";
  EXPECT_EQ(e.passes_count(), 0u);
}

TEST_F(draft_engine_test, automatic_drafts_come_from_the_model_where_the_text_says_nothing) {
  auto e = engine();
  const std::vector<token> log = {70, 71, 72, 73, 74};
  ASSERT_FALSE(e.submit(ask(log, {.how = method::automatic})));
  const auto got = run(e).at(0);
  auto alone = engine();
  ASSERT_FALSE(alone.submit(ask(log, {.how = method::blazedit})));
  EXPECT_EQ(got.tokens, run(alone).at(0).tokens);
  EXPECT_THAT(by_source(got.parts),
              ElementsAre(std::pair{source::model, static_cast<std::uint32_t>(got.tokens.size())}));
  EXPECT_GT(got.passes, 0u);
}

TEST_F(draft_engine_test, automatic_gives_the_model_up_while_it_is_wrong_and_tries_again) {
  auto e = engine();
  // The answer never is what the model says, and has no token twice.
  std::vector<token> log = {70};
  std::uint64_t passes = 0, quiet = 0;
  std::uint32_t sent = 0;
  for (token t = 71; t < 71 + 60; ++t) {
    auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic, .max_num_run = 1});
    r.from = sent;
    r.prompt_count = 1;
    ASSERT_FALSE(e.submit(r));
    sent = static_cast<std::uint32_t>(log.size());
    const auto draft = run(e).at(0).tokens;
    if (e.passes_count() == passes) ++quiet;
    passes = e.passes_count();
    log.push_back(!draft.empty() && draft[0] == t ? t + 100 : t);
  }
  EXPECT_GT(quiet, 30u);
  EXPECT_GT(passes, 2u);
}

TEST_F(draft_engine_test, automatic_stays_with_a_model_that_is_right_where_nothing_is_copied) {
  // The model is right each time, and a token that was never seen comes behind: there is nothing to look up.
  auto e = engine();
  std::vector<token> log = {70};
  std::uint32_t sent = 0;
  int drafted = 0;
  for (token fresh = 100; fresh < 160; ++fresh) {
    auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic, .max_num_run = 4}, 5);
    r.from = sent;
    r.prompt_count = 1;
    ASSERT_FALSE(e.submit(r));
    sent = static_cast<std::uint32_t>(log.size());
    const auto got = run(e).at(0);
    drafted += got.tokens.empty() ? 0 : 1;
    log.insert(log.end(), got.tokens.begin(), got.tokens.end());
    log.push_back(fresh);
  }
  EXPECT_GT(drafted, 50);
}

TEST_F(draft_engine_test, what_a_tenants_sessions_learned_of_the_model_serves_its_later_ones_only) {
  auto e = engine();
  const auto passes_of = [&](std::uint64_t tenant, std::uint64_t session) {
    const auto before = e.passes_count();
    std::vector<token> log = {70};
    std::uint32_t sent = 0;
    for (token t = 71; t < 71 + 60; ++t) {
      auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic, .max_num_run = 1});
      r.tenant = {tenant};
      r.session = {session};
      r.from = sent;
      r.prompt_count = 1;
      EXPECT_FALSE(e.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      const auto draft = run(e).at(0).tokens;
      log.push_back(!draft.empty() && draft[0] == t ? t + 100 : t);  // never what the model says
    }
    return e.passes_count() - before;
  };
  const auto first = passes_of(1, 1);
  passes_of(1, 2);
  EXPECT_LT(passes_of(1, 3), first);
  EXPECT_EQ(passes_of(2, 4), first) << "another tenant's sessions begin like the first";
}

TEST_F(draft_engine_test, the_model_reads_a_prompt_along_unless_it_may_never_be_asked) {
  for (const method how : {method::assisted, method::blazedit, method::automatic}) {
    auto e = engine();
    ASSERT_FALSE(e.submit(ask(prompt, {.how = how}, 0)));
    EXPECT_THAT(run(e).at(0).tokens, IsEmpty());
    EXPECT_EQ(e.passes_count() > 0, how != method::automatic);
  }
}

TEST_F(draft_engine_test, automatic_does_not_read_a_long_prompt_for_a_model_that_saves_little) {
  const auto passes_at = [&](std::uint32_t row_ns) {
    auto e = engine();
    std::vector<token> log;
    for (token t = 0; t < 200; ++t) log.push_back(60 + t % 200);
    auto r = ask(log, {.how = method::automatic});
    r.step = {.pass_us = 1000, .row_ns = row_ns};
    EXPECT_FALSE(e.submit(r));
    run(e);
    return e.passes_count();
  };
  EXPECT_GT(passes_at(0), 0u) << "reading is free";
  EXPECT_EQ(passes_at(4'000'000), 0u) << "200 rows cost as much as 120 passes of the target";
}

// Draft sources are scoped to a session: what one tenant's log or prediction holds is never another's draft.
TEST_F(draft_engine_test, drafts_of_a_session_hold_only_its_own_tokens) {
  const std::vector<token> shared = {1, 2, 3, 4, 5};
  std::vector<token> secret = shared;
  for (token t = 30; t < 40; ++t) secret.push_back(t);
  secret.insert(secret.end(), shared.begin(), shared.end());
  for (const method how : {method::lookup, method::prediction, method::automatic}) {
    draft_engine e;
    auto first = ask_with(secret, {40, 41}, predicted, {.how = how});
    first.tenant = {1};
    ASSERT_FALSE(e.submit(first));
    EXPECT_EQ(e.take_answers().at(0).tokens.empty(), how == method::lookup) << "the first tenant's own";
    auto own = ask_with(secret, {}, {}, {.how = method::lookup});
    own.tenant = {1};
    ASSERT_FALSE(e.submit(own));
    EXPECT_EQ(e.take_answers().at(0).tokens.at(0), 30);

    for (const std::vector<token>& answer : {std::vector<token>{}, std::vector<token>{40, 41}}) {
      auto second = ask_with(shared, answer, {}, {.how = how});
      second.session = {2};
      second.tenant = {2};
      ASSERT_FALSE(e.submit(second));
      EXPECT_THAT(e.take_answers().at(0).tokens, IsEmpty());
    }
  }
}

TEST_F(draft_engine_test, keeps_nothing_of_a_session_that_comes_back_as_another_tenants) {
  draft_engine e;
  auto first = ask_with({1, 2, 3}, {40, 41}, predicted, {.how = method::prediction});
  first.tenant = {1};
  ASSERT_FALSE(e.submit(first));
  auto second = ask_with({42}, {}, {}, {.how = method::prediction});
  second.tenant = {2};
  second.from = 5;
  EXPECT_EQ(e.submit(second), 0u) << "is asked for a log of its own";
}

// Whatever sessions do, each gets the draft it would get alone.
TEST_F(draft_engine_test, drafts_for_many_as_for_one) {
  std::mt19937 random(7);
  for (int world = 0; world < 6; ++world) {
    auto shared = engine(12, 4);
    std::map<std::uint64_t, std::vector<token>> logs;
    for (int round = 0; round < 30; ++round) {
      std::vector<draft_request> asked;
      for (std::uint64_t s = 1; s <= 3; ++s) {
        auto& log = logs[s];
        if (log.empty() || random() % 3 != 0) {
          const std::size_t more = log.empty() ? 5 + random() % 30 : random() % 4;
          for (std::size_t i = 0; i < more && log.size() < 90; ++i) log.push_back(static_cast<token>(random() % 12));
        } else {
          log.resize(log.size() - random() % log.size());
        }
        const method how = random() % 2 == 0 ? method::assisted : method::blazedit;
        auto r = ask(log, {.how = how, .confidence_min = 0.05F, .micro_draft_tokens = 6}, 1 + random() % 8);
        r.session = {s};
        ASSERT_FALSE(shared.submit(r));
        asked.push_back(r);
        if (random() % 2 == 0) shared.step();
      }
      std::map<std::uint64_t, std::vector<token>> got;
      for (const auto& a : run(shared)) got[a.session.value] = a.tokens;
      for (const auto& r : asked) {
        auto lonely = engine(12);
        ASSERT_FALSE(lonely.submit(r));
        EXPECT_EQ(got.at(r.session.value), run(lonely).at(0).tokens) << world << " " << round;
      }
    }
  }
}

/// Each look at it takes a while.
struct slow_clock final : environment {
  [[nodiscard]] instant now() const override { return time += look; }
  [[nodiscard]] std::int64_t unix_seconds() const override { return 0; }
  std::uint64_t random() override { return 0; }
  microseconds look{0};
  mutable instant time{};
};

TEST_F(draft_engine_test, automatic_leaves_a_model_alone_whose_passes_cost_as_much_as_the_targets) {
  slow_clock clock;
  clock.look = microseconds{1000};
  const auto passes_of = [&](cost::step_cost step) {
    auto e = engine(64, 8, &clock);
    std::vector<token> log = {70};
    std::uint32_t sent = 0;
    for (token t = 71; t < 71 + 60; ++t) {  // of each draft two tokens are right
      auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic, .max_num_run = 4});
      r.from = sent;
      r.prompt_count = 1;
      r.step = step;
      EXPECT_FALSE(e.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      auto draft = run(e).at(0).tokens;
      if (draft.size() > 2) draft.erase(draft.begin() + 2, draft.end());
      log.insert(log.end(), draft.begin(), draft.end());
      log.push_back(t + 100);
    }
    return e.passes_count();
  };
  const auto dear = passes_of({.pass_us = 1000});
  EXPECT_LT(dear * 2, passes_of({.pass_us = 100'000}));
  EXPECT_LT(dear * 2, passes_of({})) << "nothing is known";
}

TEST_F(draft_engine_test, automatic_takes_the_model_where_rounds_take_long_beside_their_passes) {
  const auto passes_of = [&](std::int64_t beside_us, bool others) {
    slow_clock clock;
    auto e = engine(64, 8, &clock);
    std::vector<token> log = {70};
    std::uint32_t sent = 0;
    const std::size_t rounds = 200;
    for (std::size_t round = 0; round < rounds; ++round) {  // the model's tokens are right, no others
      auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic, .max_num_run = 4}, 2);
      r.from = sent;
      r.prompt_count = 1;
      r.step = {.pass_us = 1000, .row_ns = 1000};
      EXPECT_FALSE(e.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      clock.look = microseconds{1500};  // a pass of the small model, mostly
      const auto answer = run(e).at(0);
      clock.look = microseconds{0};
      clock.time += microseconds{1000 + beside_us};
      if (others) {
        auto other = ask({5, 6, 7}, {.how = method::lookup});
        other.session = {9};
        EXPECT_FALSE(e.submit(other));
        e.take_answers();
      }
      auto draft = answer.tokens;
      if (answer.passes == 0) draft.clear();
      log.insert(log.end(), draft.begin(), draft.end());
      log.push_back(71 + static_cast<token>(round % 180));
    }
    return e.passes_count();
  };
  const auto usual = passes_of(0, false);
  EXPECT_GT(passes_of(10'000, false), 2 * usual);
  EXPECT_EQ(passes_of(10'000, true), passes_of(0, true)) << "what others make the target work does not count";
}

// The answer repeats 120 tokens but for every twelfth. The model sees where copies go on as lookup does, a token
// earlier. Earlier sessions have shown that.
TEST_F(draft_engine_test, automatic_leaves_to_lookup_what_it_brings_a_token_later) {
  constexpr token length = 120;
  const auto is_new = [](std::size_t i) { return i % 12 == 11; };
  std::vector<token> old_file, answer;
  for (token t = 0; t < length; ++t) {
    old_file.push_back(t);
    answer.push_back(is_new(static_cast<std::size_t>(t)) ? length + t / 12 : t);
  }
  const auto passes_of = [&](const std::vector<token>& text_before, bool knows_new) {
    slow_clock clock;
    struct replay final : model::token_chooser {
      std::vector<token> choices;
      std::optional<token> choose(const row& at) const override {
        return at.index < choices.size() ? choices[at.index] : 0;
      }
      float confidence(std::uint64_t, float) const override { return 0.9F; }
    };
    const auto small = std::make_shared<replay>();
    for (std::size_t i = 0; i < answer.size(); ++i) small->choices.push_back(knows_new || !is_new(i) ? answer[i] : 0);
    draft_engine e({.model = {.pages_count = 64}}, {.model = small_model(64), .clock = &clock, .chooser = small});
    std::uint64_t before_last = 0;
    for (std::uint64_t session = 1; session <= 6; ++session) {
      before_last = e.passes_count();
      std::vector<token> log = text_before;
      std::uint32_t sent = 0;
      while (log.size() < text_before.size() + answer.size()) {
        auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic}, 100);
        r.session = {session};
        r.from = sent;
        r.prompt_count = static_cast<std::uint32_t>(text_before.size());
        r.step = {.pass_us = 1000, .row_ns = 50'000};
        EXPECT_FALSE(e.submit(r));
        sent = static_cast<std::uint32_t>(log.size());
        clock.look = microseconds{1000};  // a pass of the small model
        const auto drafts = run(e);
        clock.look = microseconds{0};
        clock.time += microseconds{1000};
        for (const token t : drafts.at(0).tokens) {
          const std::size_t written = log.size() - text_before.size();
          if (written + 1 >= answer.size() || t != answer[written]) break;
          log.push_back(t);
        }
        log.push_back(answer[log.size() - text_before.size()]);
      }
    }
    return e.passes_count() - before_last;
  };
  const auto of_copies = passes_of(old_file, false);
  EXPECT_LT(of_copies, 10U);
  EXPECT_LT(4 * of_copies, passes_of({200}, true)) << "where nothing can be copied it is the model's";
}

TEST_F(draft_engine_test, any_step_cost_that_a_peer_may_send_is_lived_with) {
  constexpr auto most = std::numeric_limits<std::uint32_t>::max();
  for (const cost::step_cost step :
       {cost::step_cost{0, most, 0}, {1, most, 0}, {most, 0, most}, {1, 1, most}, {most, most, 1}}) {
    slow_clock clock;
    clock.look = microseconds{10};
    auto e = engine(16, 8, &clock);
    std::vector<token> log = {1, 2, 3, 1, 2};
    for (std::uint32_t sent = 0, round = 0; round < 40; ++round) {
      auto r = ask({log.begin() + sent, log.end()}, {.how = method::automatic});
      r.from = sent;
      r.prompt_count = 5;
      r.step = step;
      ASSERT_FALSE(e.submit(r));
      sent = static_cast<std::uint32_t>(log.size());
      ASSERT_LE(run(e).at(0).tokens.size(), 12U);
      log.push_back(static_cast<token>(round % 7));
    }
  }
}

/// Rounds that the method needs to write `answer`, one token beyond what was accepted each.
std::size_t rounds_for(method how, const std::vector<token>& prompt_tokens, const std::vector<token>& answer,
                       const std::vector<token>& prediction) {
  draft_engine e;
  std::size_t written = 0;
  std::size_t sent = 0;
  std::size_t rounds = 0;
  while (written < answer.size()) {
    const std::vector<token> so_far(answer.begin(), answer.begin() + static_cast<std::ptrdiff_t>(written));
    draft_request r = ask_with(prompt_tokens, so_far, prediction, {.how = how}, 80);
    if (rounds > 0) {  // only what is new, as a session asks
      r.tail.erase(r.tail.begin(), r.tail.end() - static_cast<std::ptrdiff_t>(written - sent));
      r.from = static_cast<std::uint32_t>(prompt_tokens.size() + sent);
      r.prediction.clear();
    }
    sent = written;
    EXPECT_FALSE(e.submit(r));
    const auto draft = e.take_answers().at(0).tokens;
    std::size_t i = 0;
    while (i < draft.size() && written < answer.size() && draft[i] == answer[written]) ++i, ++written;
    ++written;
    ++rounds;
  }
  return rounds;
}

TEST_F(draft_engine_test, a_prediction_worse_than_the_prompt_costs_no_rounds_to_speak_of) {
  // The old file is in the prompt; the answer changes it in four places, the prediction is wrong in forty others.
  std::vector<token> file, answer, prediction;
  for (token t = 0; t < 2000; ++t) file.push_back(100 + t);
  answer = prediction = file;
  for (std::size_t i = 250; i < 2000; i += 500) answer[i] = prediction[i] = 5;
  for (std::size_t i = 30; i < 2000; i += 50) prediction[i] = 7;
  const std::size_t looked_up = rounds_for(method::lookup, file, answer, {});
  for (const method how : {method::prediction, method::automatic}) {
    EXPECT_LE(rounds_for(how, file, answer, prediction), looked_up + 4) << static_cast<int>(how);
    EXPECT_LT(rounds_for(how, file, answer, answer), looked_up) << "a right one saves some";
  }
}

}  // namespace
}  // namespace redline::draft
