// The target model receives batches from the wire. A batch that does not fit its storage, its vocabulary or itself is
// refused before anything is computed or moved.

#include "actors/serving/target_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "actors/serving/cache_manager.hpp"
#include "tests/support/by_hand.hpp"
#include "tests/support/one_actor.hpp"

namespace redline::actors {
namespace {

constexpr auto manager_at = actor::make_address(2, 1, 4);
constexpr std::uint32_t pages_count = 4;
constexpr std::uint32_t slots_count = pages_count * kv::page_tokens;
constexpr std::uint32_t context_max = 40;
constexpr std::uint32_t rows_max = 24;

class target_model_test : public test::one_actor<target_model> {
 protected:
  target_model_test() : one_actor(2, 3) {
    who = w.add<target_model>(5, "target model", {16, 16}, [this](actor::actor_context& c) {
      return std::make_unique<target_model>(c, make_transformer(), pages_count,
                                            actor::actor_ref<cache_manager>{manager_at}, std::vector<pass_cost>{},
                                            nullptr, trie());
    });
    EXPECT_TRUE(wire.take<target_ready>());
  }
  std::unique_ptr<model::transformer> make_transformer() {
    static const auto weights =
        *model::load_weights(*test::make_tiny_model({.context = context_max}).file(), table, team);
    return std::move(*model::transformer::create(
        weights, table, team, {.pages_count = pages_count, .kv = model::kv_type::f32, .rows_max = rows_max}));
  }
  static std::shared_ptr<const grammar::token_trie> trie() {
    static const auto made = *grammar::token_trie::make(*text::tokenizer::from_file(*test::make_tiny_model().file()));
    return made;
  }
  batch_done answer(const forward_batch& m) {
    w.deliver(test::frame_of(who.where, manager_at, m));
    while (w.run_ready()) {
    }
    const auto done = wire.take<batch_done>();
    EXPECT_TRUE(done);
    EXPECT_EQ(wire.last_to, manager_at);
    EXPECT_TRUE(wire.sent.empty());
    return done.value_or(batch_done{});
  }

  static inline const kernels::kernel_table& table = *kernels::process_table().table;
  static inline kernels::worker_team team{1};
};

/// A valid batch: a prompt of two tokens and a draft of one.
forward_batch good() {
  return {.batch = 7,
          .runs = {{.sequence = {41},
                    .tokens = {1, 2, 3},
                    .memory = {.table = {{32, 3, 0}}},
                    .logits_begin = 1,
                    .draft_count = 1,
                    .prompt_count = 2,
                    .log_count = 2}},
          .moves = {{0, 64, 5, 0}}};
}

struct refusal {
  const char* name;
  const char* why;  // part of the error message
  std::function<void(forward_batch&, batch_run&)> spoil;
};

const std::vector<refusal>& refusals() {
  static const std::vector<refusal> all = {
      {"a move from outside of the storage", "expected slots below 128",
       [](auto& m, auto&) {
         m.moves = {{slots_count - 4, 0, 5, 0}};
       }},
      {"a move to outside of the storage", "expected slots below 128",
       [](auto& m, auto&) {
         m.moves = {{0, slots_count - 4, 5, 0}};
       }},
      {"a move whose end overflows", "expected slots below 128",
       [](auto& m, auto&) {
         m.moves = {{8, 0, 0xfffffffcU, 0}};
       }},
      {"a run without tokens", "a run without tokens", [](auto&, auto& run) { run.tokens.clear(); }},
      {"nothing but a draft", "a draft without a token before it", [](auto&, auto& run) { run.draft_count = 3; }},
      {"logits after the run", "logits requested", [](auto&, auto& run) { run.logits_begin = 4; }},
      {"logits for too many rows", "logits requested for rows other", [](auto&, auto& run) { run.logits_begin = 0; }},
      {"logits for too few rows", "logits requested for rows other", [](auto&, auto& run) { run.logits_begin = 2; }},
      {"a negative token", "token -1 is outside", [](auto&, auto& run) { run.tokens[1] = -1; }},
      {"a token beyond the vocabulary", "token 300 is outside",
       [](auto&, auto& run) { run.tokens[2] = test::tiny_model::vocabulary; }},
      {"a token beyond the vocabulary after the draft", "token 300 is outside",
       [](auto&, auto& run) { run.after_draft = test::tiny_model::vocabulary; }},
      {"a slot outside of the storage", "a slot outside",
       [](auto&, auto& run) {
         run.memory.table = {{slots_count - 2, 3, 0}};
       }},
      {"a slot that overflows", "a slot outside",
       [](auto&, auto& run) {
         run.memory.table = {{0xffffffffU, 3, 0}};
       }},
      {"a table of too many pieces", "more than 65535 pieces",
       [](auto&, auto& run) {
         run.memory.table.assign(70'000, {32, 1, 0});
       }},
      {"an empty piece", "an empty piece",
       [](auto&, auto& run) {
         run.memory.table = {{32, 3, 0}, {0, 0, 5}};
       }},
      {"a table that is too short", "a page table of 2 tokens for a run that ends at 3",
       [](auto&, auto& run) {
         run.memory.table = {{32, 2, 0}};
       }},
      {"a table that is too long", "a page table of 4 tokens for a run that ends at 3",
       [](auto&, auto& run) {
         run.memory.table = {{32, 4, 0}};
       }},
      {"a negative position", "a page table of 3 tokens", [](auto&, auto& run) { run.first_position = -1; }},
      {"a position beyond the context", "context",
       [](auto&, auto& run) {
         run.memory.table = {{32, context_max + 1, 0}};
         run.first_position = context_max - 2;
       }},
      {"a grammar that cannot be compiled", "",
       [](auto&, auto& run) { run.grammar = grammar::text_constraint({.text = "{\"type\":5}"}); }},
      {"a state that the grammar does not have", "the state is not one of the grammar's",
       [](auto&, auto& run) {
         run.grammar = grammar::text_constraint({.text = "{\"type\":\"object\"}"});
         run.grammar.state = {0xffffffffU, 0xffffffffU, 0xffffffffU};
       }},
      {"more rows than a pass has", "expected at most 24 rows, found 25",
       [](auto&, auto& run) {
         run = {.sequence = {41},
                .tokens = std::vector<token>(22, 1),
                .memory = {.table = {{32, 22, 0}}},
                .logits_begin = 22};
       }},
  };
  return all;
}

TEST_F(target_model_test, answers_a_good_batch_with_tokens) {
  const batch_done done = answer(good());
  EXPECT_EQ(done.batch, 7u);
  EXPECT_FALSE(done.why_not) << done.why_not->describe();
  ASSERT_EQ(done.results.size(), 1u);
  EXPECT_EQ(done.results[0].sequence.value, 41u);
  EXPECT_EQ(done.results[0].tokens.size(), done.results[0].accepted_count + 1);
}

TEST_F(target_model_test, agrees_to_a_draft_that_is_scored) {
  forward_batch m = good();
  m.runs[0].scores_draft = true;
  m.runs[0].logprobs = 2;
  for (const token third : {3, 4, 5}) {
    m.runs[0].tokens[2] = third;
    const auto got = answer(m).results.at(0);
    EXPECT_EQ(got.accepted_count, 1u);
    ASSERT_EQ(got.tokens.size(), 2u);
    EXPECT_EQ(got.tokens[0], third);
    ASSERT_EQ(got.logprobs.size(), 2u);
    EXPECT_EQ(got.logprobs[0].top.size(), 2u);
  }
}

// Compares batches of many drafts, whose heads take several steps, with single runs without a draft.
TEST_F(target_model_test, drafts_in_a_batch_give_what_plain_decoding_gives) {
  std::mt19937 random(3);
  const auto run_of = [](std::uint64_t id, std::vector<token> tokens, std::uint32_t draft, float temperature) {
    const auto count = static_cast<std::uint32_t>(tokens.size());
    return batch_run{.sequence = {id},
                     .tokens = std::move(tokens),
                     .memory = {.table = {{static_cast<std::uint32_t>(id) * 32, count, 0}}},
                     .logits_begin = count - draft - 1,
                     .draft_count = draft,
                     .prompt_count = 2,
                     .log_count = count - draft,
                     .sampling = {.temperature = temperature, .seed = id}};
  };
  const auto plain = [&](std::uint64_t id, std::vector<token> log, std::size_t count, float temperature) {
    std::vector<token> out;
    while (out.size() < count) {
      const auto got = answer({.batch = 1, .runs = {run_of(id, log, 0, temperature)}}).results.at(0).tokens;
      out.push_back(got.at(0));
      log.push_back(got.at(0));
    }
    return out;
  };
  for (const float temperature : {0.0F, 0.9F}) {
    for (int trial = 0; trial < 12; ++trial) {
      forward_batch m{.batch = 2};
      std::vector<std::vector<token>> expected;
      std::uint32_t room = rows_max;
      for (std::uint64_t id = 0; id < 3; ++id) {
        const std::vector<token> prompt{static_cast<token>(1 + random() % 200), static_cast<token>(2 + id)};
        const auto draft = static_cast<std::uint32_t>(random() % (id == 2 ? room - 1 : 8));
        const float own = id == 1 ? 0.0F : temperature;
        auto right = plain(id, prompt, draft + 1, own);
        auto tokens = prompt;
        tokens.insert(tokens.end(), right.begin(), right.end() - 1);
        // Some drafts are right to their ends, the others up to a random token.
        const std::size_t wrong = random() % 3 == 0 || draft == 0 ? draft : random() % draft;
        if (wrong < draft) {
          tokens[2 + wrong] = (tokens[2 + wrong] + 1) % 200;
          right.resize(wrong + 1);
        }
        room -= static_cast<std::uint32_t>(tokens.size());
        m.runs.push_back(run_of(id, tokens, draft, own));
        expected.push_back(right);
      }
      const batch_done done = answer(m);
      ASSERT_EQ(done.results.size(), 3U);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(done.results[i].tokens, expected[i]) << "trial " << trial << ", run " << i;
        EXPECT_EQ(done.results[i].accepted_count + 1, expected[i].size());
      }
    }
  }
}

TEST_F(target_model_test, answers_a_batch_of_moves_alone) {
  forward_batch m = good();
  m.runs.clear();
  const batch_done done = answer(m);
  EXPECT_FALSE(done.why_not);
  EXPECT_TRUE(done.results.empty());
}

TEST_F(target_model_test, refuses_what_does_not_fit_and_computes_nothing) {
  const auto before = answer(good());
  for (const refusal& each : refusals()) {
    SCOPED_TRACE(each.name);
    // The spoiled run follows a good one. If the batch were accepted, it would overwrite that run's first tokens.
    forward_batch m = good();
    m.runs.push_back(m.runs[0]);
    m.runs[0].sequence = {40};
    m.runs[0].tokens = {9, 9, 9};
    each.spoil(m, m.runs[1]);
    const batch_done done = answer(m);
    EXPECT_EQ(done.batch, 7u);
    EXPECT_TRUE(done.results.empty());
    ASSERT_TRUE(done.why_not);
    EXPECT_NE(done.why_not->context.find(each.why), std::string::npos) << done.why_not->context;
    // A run of one token sees what the first answer computed.
    forward_batch next = good();
    next.moves.clear();
    next.runs[0].tokens = {3};
    next.runs[0].first_position = 2;
    next.runs[0].logits_begin = 0;
    next.runs[0].draft_count = 0;
    forward_batch whole = good();
    whole.moves.clear();
    whole.runs[0].logits_begin = 2;
    whole.runs[0].draft_count = 0;
    const auto after = answer(next);
    ASSERT_EQ(after.results.size(), 1u);
    EXPECT_EQ(after.results[0].tokens, answer(whole).results.at(0).tokens);
  }
  EXPECT_EQ(answer(good()).results[0].tokens, before.results[0].tokens);
}

TEST_F(target_model_test, follows_a_grammar_that_it_knows_by_name) {
  forward_batch with_text = good();
  with_text.runs[0].grammar = grammar::text_constraint({.text = "{\"type\":\"object\"}"});
  with_text.runs[0].grammar_name = 5;
  forward_batch named = good();
  named.runs[0].grammar = grammar::without_text({});
  named.runs[0].grammar_name = 5;
  const auto unknown = answer(named);
  EXPECT_TRUE(unknown.lacks_grammars);
  EXPECT_FALSE(unknown.why_not);
  EXPECT_TRUE(unknown.results.empty());

  const auto expected = answer(with_text).results.at(0).tokens;
  EXPECT_NE(expected, answer(good()).results.at(0).tokens) << "the grammar has an effect";
  EXPECT_EQ(answer(named).results.at(0).tokens, expected);
  named.runs[0].grammar.state = {0xffffffffU, 0xffffffffU, 0xffffffffU};
  EXPECT_TRUE(answer(named).why_not) << "a state that the grammar does not have";
  named.runs[0].grammar.state.clear();
  named.runs[0].grammar_name = 0;
  EXPECT_TRUE(answer(named).lacks_grammars) << "an empty grammar has no name";

  // Another run of the same batch brings the text.
  forward_batch both = good();
  both.runs.push_back(both.runs[0]);
  both.runs[0].sequence = {40};
  for (auto& run : both.runs) run.grammar_name = 6;
  both.runs[0].grammar = grammar::without_text({});
  both.runs[1].grammar = with_text.runs[0].grammar;
  const auto got = answer(both);
  EXPECT_EQ(got.results.at(0).tokens, expected);
  EXPECT_EQ(got.results.at(1).tokens, expected);
}

TEST_F(target_model_test, forgets_the_grammars_that_it_has_not_seen_for_long) {
  const auto with_lines = [](std::uint32_t lines) {
    forward_batch m = good();
    m.runs[0].grammar = grammar::copy_constraint({.files = {{lines, 0}}});
    m.runs[0].grammar_name = lines;
    return m;
  };
  for (std::uint32_t lines = 1; lines <= grammar::grammar_cache::grammars_max + 1; ++lines) {
    EXPECT_FALSE(answer(with_lines(lines)).why_not);
  }
  for (const std::uint32_t lines : {1u, 2u}) {
    forward_batch named = with_lines(lines);
    named.runs[0].grammar = grammar::without_text({});
    EXPECT_EQ(answer(named).lacks_grammars, lines == 1);
  }
}

TEST_F(target_model_test, says_who_it_is_when_asked) {
  w.deliver(test::frame_of(who.where, manager_at, announce_target{}));
  while (w.run_ready()) {
  }
  const auto ready = wire.take<target_ready>();
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->context, context_max);
  EXPECT_EQ(ready->rows_max, rows_max);
  EXPECT_EQ(ready->pages_count, pages_count);
  EXPECT_EQ(ready->vocabulary, test::tiny_model::vocabulary);
  EXPECT_TRUE(ready->mixture.is_dense());
}

// The time of a mixture's pass depends on how many experts it touches, which only the target model knows.
TEST(target_model, counts_the_experts_that_a_pass_touches) {
  const auto& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto weights = *model::load_weights(
      *test::make_tiny_model({.architecture = "qwen3moe", .context = context_max, .experts = 6}).file(), table, team);
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 3, wire, env};
  const auto who = w.add<target_model>(5, "target model", {16, 16}, [&](actor::actor_context& c) {
    return std::make_unique<target_model>(
        c, std::move(*model::transformer::create(weights, table, team, {.pages_count = pages_count, .rows_max = 24})),
        pages_count, actor::actor_ref<cache_manager>{manager_at});
  });
  const auto ready = wire.take<target_ready>();
  ASSERT_TRUE(ready);
  EXPECT_EQ(ready->mixture, (cost::mixture_shape{.layers = 2, .experts = 6, .used = 2}));
  for (std::uint64_t batch = 1; batch <= 2; ++batch) {
    w.deliver(test::frame_of(
        who.where, manager_at,
        forward_batch{.batch = batch, .runs = {{.sequence = {1}, .tokens = {3}, .memory = {.table = {{0, 1, 0}}}}}}));
    while (w.run_ready()) {
    }
    const auto done = wire.take<batch_done>();
    ASSERT_TRUE(done && !done->why_not);
    EXPECT_EQ(done->experts_count, 4U) << "two in each layer, of this pass";
  }
}

// The draft depends on its sequence only: not on the others of the pass, nor on whether they have drafts.
TEST(target_model, drafts_with_its_mtp_layer_what_was_asked_for) {
  const auto& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto weights = *model::load_weights(
      *test::make_tiny_model({.architecture = "qwen35", .context = context_max, .mtp = true}).file(), table, team);
  const auto results_of = [&](std::vector<draft::mtp_request> wanted, std::uint32_t context_used = 4) {
    test::virtual_environment env;
    test::hand_link wire;
    actor::worker w{2, 3, wire, env};
    const model::transformer::options how{
        .pages_count = pages_count, .state_slots = 3, .records_max = 2, .rows_max = rows_max};
    const auto who = w.add<target_model>(5, "target model", {16, 16}, [&](actor::actor_context& c) {
      return std::make_unique<target_model>(c, std::move(*model::transformer::create(weights, table, team, how)),
                                            pages_count, actor::actor_ref<cache_manager>{manager_at});
    });
    EXPECT_TRUE(wire.take<target_ready>());
    forward_batch m{.batch = 1};
    for (std::uint32_t i = 0; i < wanted.size(); ++i) {
      m.runs.push_back({.sequence = {i + 1},
                        .tokens = {1, 2, 3, static_cast<token>(4 + i)},
                        .memory = {.table = {{32 * i, context_used, 0}}, .state = {.slot = i, .kept = 3}},
                        .logits_begin = 2,
                        .draft_count = 1,
                        .prompt_count = 3,
                        .log_count = 3,
                        .mtp = wanted[i]});
    }
    w.deliver(test::frame_of(who.where, manager_at, m));
    while (w.run_ready()) {
    }
    const auto done = wire.take<batch_done>();
    EXPECT_TRUE(done && !done->why_not);
    return done->results;
  };
  const draft::mtp_request whole{.tokens = 5};
  const auto alone = results_of({whole});
  ASSERT_EQ(alone[0].accepted_count, 0U) << "the draft is wrong";
  EXPECT_EQ(alone[0].mtp.tokens.size(), 5U);
  EXPECT_EQ(alone[0].mtp.grades.size(), 5U);
  EXPECT_EQ(alone[0].mtp.rows, 5U);
  EXPECT_GT(alone[0].mtp.row_us, 0U);
  const auto three = results_of({whole, {}, {.tokens = 2, .if_refused = true}});
  EXPECT_EQ(three[0].mtp.tokens, alone[0].mtp.tokens);
  EXPECT_EQ(three[0].mtp.grades, alone[0].mtp.grades);
  EXPECT_TRUE(three[1].mtp.tokens.empty());
  EXPECT_EQ(three[2].mtp.tokens.size(), 2U);
  const auto plain = results_of({{}, {}, {}});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(plain[i].tokens, three[i].tokens);
  EXPECT_EQ(results_of({{.tokens = 4'000'000'000}})[0].mtp.tokens.size(), draft::mtp_tokens_max);
  EXPECT_TRUE(results_of({{.tokens = 5, .token_cost = 1}})[0].mtp.tokens.empty()) << "no token is worth a round";
  EXPECT_TRUE(results_of({{.tokens = 5, .token_cost = std::nanf("")}})[0].mtp.tokens.empty());
}

TEST(target_model, refuses_states_that_are_not_in_its_storage_or_written_twice) {
  const auto& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto weights = *model::load_weights(
      *test::make_tiny_model({.architecture = "qwen35", .context = context_max}).file(), table, team);
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 3, wire, env};
  const model::transformer::options how{
      .pages_count = pages_count, .state_slots = 2, .state_copies = 1, .records_max = 2, .rows_max = rows_max};
  const auto who = w.add<target_model>(5, "target model", {16, 16}, [&](actor::actor_context& c) {
    return std::make_unique<target_model>(c, std::move(*model::transformer::create(weights, table, team, how)),
                                          pages_count, actor::actor_ref<cache_manager>{manager_at});
  });
  EXPECT_TRUE(wire.take<target_ready>());
  const auto good_batch = [] {
    forward_batch m{.batch = 1};
    for (std::uint32_t slot : {0U, 1U}) {
      m.runs.push_back({.sequence = {slot + 1},
                        .tokens = {1, 2, 3, 4},
                        .memory = {.table = {{32 * slot, 4, 0}}, .state = {.slot = slot, .kept = 2}},
                        .logits_begin = 3,
                        .prompt_count = 4,
                        .log_count = 4});
    }
    m.runs[1].memory.state.snapshots = {{2, 2}};
    return m;
  };
  struct mistake {
    const char* what;
    const char* why;  // empty for none
    std::function<void(forward_batch&)> make;
  };
  for (const auto& [what, why, make] : {
           mistake{"none", "", [](auto&) {}},
           {"a slot for copies", "a state outside", [](auto& m) { m.runs[0].memory.state.slot = 2; }},
           {"too many records", "a state outside", [](auto& m) { m.runs[0].memory.state.records = 3; }},
           {"more kept than there are", "a state outside", [](auto& m) { m.runs[0].memory.state.kept = 5; }},
           {"more left than records", "a state outside", [](auto& m) { m.runs[0].memory.state.kept = 1; }},
           {"a copy of no row", "a state outside", [](auto& m) { m.runs[1].memory.state.snapshots[0].rows = 0; }},
           {"a copy of a draft", "a state outside", [](auto& m) { m.runs[1].memory.state.snapshots[0].rows = 3; }},
           {"a copy to nowhere", "a state outside", [](auto& m) { m.runs[1].memory.state.snapshots[0].slot = 9; }},
           {"a copy to a sequence's slot", "a state outside",
            [](auto& m) { m.runs[1].memory.state.snapshots[0].slot = 1; }},
           {"one slot for both", "another run writes", [](auto& m) { m.runs[0].memory.state.slot = 1; }},
           {"a copy that another makes", "another run writes",
            [](auto& m) {
              m.runs[0].memory.state.snapshots = {{2, 2}};
            }},
           {"a copy before the pass", "a state is copied",
            [](auto& m) {
              m.copies = {{0, 3}};
            }},
       }) {
    auto m = good_batch();
    make(m);
    w.deliver(test::frame_of(who.where, manager_at, m));
    while (w.run_ready()) {
    }
    const auto done = wire.take<batch_done>();
    ASSERT_TRUE(done) << what;
    ASSERT_EQ(done->why_not.has_value(), *why != 0) << what;
    const std::string found = done->why_not ? done->why_not->context : "";
    EXPECT_NE(found.find(why), std::string::npos) << what << ": " << found;
  }
}

// A token whose embedding is NaN spoils only the sequence that contains it.
TEST(target_model, a_sequence_whose_numbers_overflow_has_no_answer_and_others_have) {
  auto tiny = test::make_tiny_model({.context = context_max});
  auto& embedding = tiny.tensor("token_embd.weight");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t i = 0; i < 64; ++i) {
    std::memcpy(embedding.payload.data() + (std::size_t{3} * 64 + i) * sizeof(float), &nan, sizeof nan);
  }
  const auto& table = *kernels::process_table().table;
  kernels::worker_team team(1);
  const auto weights = *model::load_weights(*tiny.file(), table, team);
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 3, wire, env};
  const auto who = w.add<target_model>(5, "target model", {16, 16}, [&](actor::actor_context& c) {
    return std::make_unique<target_model>(
        c, std::move(*model::transformer::create(weights, table, team, {.pages_count = pages_count, .rows_max = 24})),
        pages_count, actor::actor_ref<cache_manager>{manager_at});
  });
  EXPECT_TRUE(wire.take<target_ready>());
  const auto run_of = [](std::uint64_t sequence, std::vector<token> tokens, std::uint32_t slot) {
    return batch_run{.sequence = {sequence},
                     .tokens = std::move(tokens),
                     .memory = {.table = {{slot, 2, 0}}},
                     .logits_begin = 1,
                     .prompt_count = 2,
                     .log_count = 2};
  };
  w.deliver(
      test::frame_of(who.where, manager_at, forward_batch{1, {run_of(41, {1, 3}, 0), run_of(42, {1, 2}, 32)}, {}}));
  while (w.run_ready()) {
  }
  const auto done = wire.take<batch_done>();
  ASSERT_TRUE(done);
  ASSERT_FALSE(done->why_not);
  ASSERT_TRUE(done->results.at(0).why_not);
  EXPECT_EQ(done->results[0].why_not->code, errc::internal);
  EXPECT_TRUE(done->results[0].tokens.empty());
  EXPECT_FALSE(done->results.at(1).why_not);
  EXPECT_EQ(done->results[1].tokens.size(), 1u);
}

TEST(target_model, refuses_grammars_without_a_vocabulary_that_can_spell_them) {
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 3, wire, env};
  const auto who = w.add<target_model>(5, "target model", {16, 16}, [](actor::actor_context& c) {
    return std::make_unique<target_model>(c, test::shared_weights().make(pages_count), pages_count,
                                          actor::actor_ref<cache_manager>{manager_at});
  });
  EXPECT_TRUE(wire.take<target_ready>());
  forward_batch m = good();
  m.runs[0].grammar = grammar::text_constraint({.text = "{\"type\":\"object\"}"});
  w.deliver(test::frame_of(who.where, manager_at, m));
  while (w.run_ready()) {
  }
  const auto done = wire.take<batch_done>();
  ASSERT_TRUE(done);
  ASSERT_TRUE(done->why_not);
  EXPECT_EQ(done->why_not->code, errc::malformed_message);
}

}  // namespace
}  // namespace redline::actors
