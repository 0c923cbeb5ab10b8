// One session's edit, message by message, as in ARCHITECTURE.md; the test acts as all other actors.

#include <gtest/gtest.h>

#include "actors/serving/cache_manager.hpp"
#include "actors/serving/draft_model.hpp"
#include "actors/serving/session.hpp"
#include "runtime/actor/worker.hpp"
#include "tests/support/one_actor.hpp"
#include "tests/support/tiny_model.hpp"

namespace redline::actors {
namespace {

constexpr auto client = actor::make_address(1, 2, 8);
constexpr auto manager_at = actor::make_address(2, 1, 4);
constexpr auto drafter_at = actor::make_address(3, 4, 6);

class life_of_an_edit : public test::one_actor<session> {
 protected:
  life_of_an_edit() : one_actor(1, 1) {}
  void open(std::uint32_t tokens_max, draft::method how = draft::method::blazedit, std::vector<token> prediction = {},
            std::vector<std::string> stops = {}, const char* schema = nullptr) {
    generation_spec g;
    g.session = {41};
    g.prompt = {'a', 'b', 'c'};
    g.tokens_max = tokens_max;
    g.context_max = 100;
    g.draft.how = how;
    g.prediction = std::move(prediction);
    g.stops = std::move(stops);
    const auto tokenizer = *text::tokenizer::from_file(*test::make_tiny_model().file());
    if (schema != nullptr) g.rules = *make_text_rules(*grammar::token_trie::make(tokenizer), {.text = schema});
    const session_partners partners{.manager = {manager_at}, .drafter = {drafter_at}, .client = client};
    who = w.add_temporary<session>("session", {16, 16}, [=](actor::actor_context& c) {
      return std::make_unique<session>(c, *token_log::make(g, tokenizer), partners);
    });
  }
  /// The target's answer to a draft that it accepts completely.
  verified says(std::uint64_t round, std::vector<token> tokens) {
    return {.sequence = {41},
            .round = {round},
            .tokens = tokens,
            .verified_count = static_cast<std::uint32_t>(tokens.size()) - 1,
            .passes = 1};
  }
};

TEST_F(life_of_an_edit, proposes_verifies_commits_and_streams_until_the_end) {
  open(5);
  EXPECT_EQ(expect<propose>(drafter_at).tokens_max, 0u);  // the draft model only reads the prompt
  const auto first = expect<verify_run>(manager_at);
  EXPECT_EQ(first.round.tail, (std::vector<token>{'a', 'b', 'c'}));
  EXPECT_EQ(first.terms->facts.tokens_max, 8u);
  EXPECT_TRUE(first.round.draft.empty());
  inject(manager_at, says(1, {'d'}));
  EXPECT_EQ(expect<session_text>(client).text, "d");

  const auto ask = expect<propose>(drafter_at);
  EXPECT_EQ(ask.log.from, 3u);
  EXPECT_EQ(ask.log.tokens, std::vector<token>{'d'});
  EXPECT_EQ(ask.tokens_max, 3u);  // the last of four is the target's own token
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .tokens = {'e', 'f', 'x'}});
  const auto second = expect<verify_run>(manager_at);
  EXPECT_EQ(second.round.draft, (std::vector<token>{'e', 'f', 'x'}));
  EXPECT_EQ(second.round.from, 4u);
  inject(manager_at, says(2, {'e', 'f', 'g'}));
  EXPECT_EQ(expect<session_text>(client).text, "efg");
  // With space for one token, no draft is requested.
  EXPECT_EQ(expect<verify_run>(manager_at).round.number.value, 3u);
  inject(manager_at, says(3, {'h'}));
  EXPECT_EQ(expect<session_text>(client).text, "h");
  const auto end = expect<session_finished>(client);
  EXPECT_EQ(end.reason, finish_reason::length);
  EXPECT_EQ(end.stats.completion_tokens, 5u);
  EXPECT_EQ(end.stats.accepted, 2u);
  EXPECT_EQ(expect<release_sequence>(manager_at).sequence.value, 41u);
  EXPECT_EQ(expect<forget>(drafter_at).session.value, 41u);
  EXPECT_EQ(w.find(who), nullptr);
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(life_of_an_edit, verifies_no_draft_tokens_that_do_not_exist) {
  open(10);
  wire.sent.clear();
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  expect<propose>(drafter_at);
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .tokens = {'e', test::tiny_model::vocabulary, 'f'}});
  EXPECT_EQ(expect<verify_run>(manager_at).round.draft, std::vector<token>{'e'});
}

TEST_F(life_of_an_edit, goes_on_without_a_drafter_that_is_silent) {
  open(10);
  wire.sent.clear();
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  expect<propose>(drafter_at);
  pass(microseconds{1'250'000});
  EXPECT_TRUE(expect<verify_run>(manager_at).round.draft.empty());
  // The proposal comes too late and is ignored.
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .tokens = {'e'}});
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(life_of_an_edit, drafts_itself_while_the_drafter_is_away) {
  open(20);
  wire.sent.clear();
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  EXPECT_EQ(expect<propose>(drafter_at).log.from, 3u);
  inject({}, actor::undeliverable{.to = drafter_at, .what = propose::id, .why = {errc::unreachable, "gone"}});
  EXPECT_TRUE(expect<verify_run>(manager_at).round.draft.empty())
      << "this round continues at once; nothing is copied yet";
  inject(manager_at, says(2, {'a'}));
  expect<session_text>(client);
  EXPECT_EQ(expect<verify_run>(manager_at).round.draft.front(), 'b') << "as the prompt continues";
  // After a while the session asks the drafter again and sends everything that the drafter may have lost.
  pass(microseconds{5'250'000});
  wire.sent.clear();
  auto third = says(3, {'b'});
  third.verified_count = 1;
  inject(manager_at, third);
  expect<session_text>(client);
  EXPECT_EQ(expect<propose>(drafter_at).log.tokens.size(), 6u);
  inject({}, cancel_session{});
  expect<release_sequence>(manager_at);
  expect<forget>(drafter_at);
}

TEST_F(life_of_an_edit, tells_the_drafter_what_passes_take) {
  open(10);
  EXPECT_EQ(expect<propose>(drafter_at).round_us, 0u) << "not known yet";
  wire.sent.clear();
  auto first = says(1, {'d'});
  first.step = {.pass_us = 1500, .row_ns = 20'000};
  inject(manager_at, first);
  expect<session_text>(client);
  const auto asked = expect<propose>(drafter_at);
  EXPECT_GE(asked.round_us, 1500u);
  EXPECT_EQ(asked.row_ns, 20'000u);
}

TEST_F(life_of_an_edit, sends_the_log_again_to_an_actor_that_lost_it) {
  open(10);
  wire.sent.clear();
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  expect<propose>(drafter_at);
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .log_needed_from = 0});
  EXPECT_EQ(expect<propose>(drafter_at).log.tokens.size(), 4u);
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .tokens = {'e'}});
  EXPECT_EQ(expect<verify_run>(manager_at).round.from, 4u);
  inject(manager_at, log_needed{.sequence = {41}, .round = {2}, .from = 0});
  const auto again = expect<verify_run>(manager_at);
  EXPECT_EQ(again.round.tail.size(), 4u);
  EXPECT_EQ(again.round.draft, std::vector<token>{'e'});
}

TEST_F(life_of_an_edit, drafts_from_the_prediction_without_a_message) {
  open(10, draft::method::prediction, {'d', 'e', 'f', -1});
  expect<verify_run>(manager_at);
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  EXPECT_EQ(expect<verify_run>(manager_at).round.draft, (std::vector<token>{'e', 'f'})) << "up to the invalid token";
  inject(client, cancel_session{});
  wire.sent.clear();
}

TEST_F(life_of_an_edit, asks_what_the_model_costs_before_it_sends_it_a_log) {
  open(20, draft::method::automatic);
  EXPECT_TRUE(expect<propose>(drafter_at).log.tokens.empty());
  expect<verify_run>(manager_at);
  inject(drafter_at, proposal{.session = {41}, .cost = {.pass_us = 10, .row_ns = 10}, .reads_max = 64});
  auto first = says(1, {'d'});
  first.step = {.pass_us = 1500, .row_ns = 20'000};
  inject(manager_at, first);
  expect<session_text>(client);
  EXPECT_EQ(expect<propose>(drafter_at).log.tokens.size(), 4u) << "a model this cheap pays at once";
  inject(client, cancel_session{});
  wire.sent.clear();
}

TEST_F(life_of_an_edit, counts_drafted_and_accepted_tokens_by_source) {
  open(9);
  wire.sent.clear();
  const auto round = [&](std::uint64_t n, std::vector<token> draft, std::vector<draft::graded_segment> runs,
                         std::uint32_t verified, std::vector<token> said) {
    expect<propose>(drafter_at);
    inject(drafter_at, proposal{.session = {41}, .round = {n}, .tokens = std::move(draft), .runs = std::move(runs)});
    expect<verify_run>(manager_at);
    auto v = says(n, std::move(said));
    v.verified_count = verified;
    inject(manager_at, v);
    expect<session_text>(client);
  };
  using draft::source;
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  // Two of three are right; the second is the prediction's last one.
  round(2, {'e', 'f', 'x'}, {{source::prediction, 0, 2}, {source::lookup, 0, 1}}, 3, {'e', 'f', 'g'});
  // The scheduler shortened the draft, so the last token was not tried.
  round(3, {'y', 'z', 'z'}, {{source::model, 0, 3}}, 2, {'h'});
  // A token that does not exist ends the draft; the source's remaining tokens do not count.
  round(4, {'i', test::tiny_model::vocabulary, 'z'}, {{source::prediction, 0, 3}}, 1, {'i', 'j'});
  // There is no draft at all.
  round(5, {}, {}, 0, {'k'});
  expect<verify_run>(manager_at);
  inject(manager_at, says(6, {'l'}));
  expect<session_text>(client);
  const auto stats = expect<session_finished>(client).stats;
  EXPECT_EQ(stats.completion_tokens, 9u);
  EXPECT_EQ(stats.of(source::prediction), (source_stats{3, 3}));
  EXPECT_EQ(stats.of(source::lookup), (source_stats{1, 0}));
  EXPECT_EQ(stats.of(source::model), (source_stats{2, 0}));
  EXPECT_EQ(stats.drafted, 6u);
  EXPECT_EQ(stats.accepted, 3u);
}

TEST_F(life_of_an_edit, counts_no_token_behind_the_end_of_the_answer) {
  open(9, draft::method::blazedit, {}, {"f"});
  wire.sent.clear();
  inject(manager_at, says(1, {'d'}));
  expect<session_text>(client);
  expect<propose>(drafter_at);
  inject(
      drafter_at,
      proposal{
          .session = {41}, .round = {2}, .tokens = {'e', 'f', 'g', 'h'}, .runs = {{draft::source::prediction, 0, 4}}});
  expect<verify_run>(manager_at);
  inject(manager_at, says(2, {'e', 'f', 'g', 'h', 'i'}));
  EXPECT_EQ(expect<session_text>(client).text, "e");
  const auto stats = expect<session_finished>(client).stats;
  EXPECT_EQ(stats.completion_tokens, 3u);  // the token of the stop string counts as one
  EXPECT_EQ(stats.of(draft::source::prediction), (source_stats{2, 2}));
}

TEST_F(life_of_an_edit, asks_again_for_an_answer_and_takes_it_once) {
  open(10);
  wire.sent.clear();
  pass(microseconds{2'000'000});
  EXPECT_EQ(expect<verify_run>(manager_at).round.number.value, 1u);
  inject(manager_at, says(1, {'d'}));
  inject(manager_at, says(1, {'d'}));
  EXPECT_EQ(expect<session_text>(client).text, "d");
  expect<propose>(drafter_at);
  EXPECT_TRUE(wire.sent.empty());
}

// Terms may arrive after a restart of the front, at an address that now belongs to another session. It may have an
// older log of the sequence, which the rest of this log does not continue.
TEST_F(life_of_an_edit, sends_its_terms_until_the_manager_has_answered_and_when_it_was_lost) {
  const char* const schema = "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}";
  open(20, draft::method::regular, {}, {}, schema);
  EXPECT_EQ(expect<verify_run>(manager_at).terms->grammar.text, schema);
  pass(microseconds{5'000'000});
  EXPECT_EQ(expect<verify_run>(manager_at).terms->grammar.text, schema) << "asked again because there was no answer";
  wire.sent.clear();
  inject(manager_at, says(1, {'['}));
  expect<session_text>(client);
  const auto second = expect<verify_run>(manager_at);
  EXPECT_FALSE(second.terms);
  EXPECT_FALSE(second.grammar_state.empty());
  inject(manager_at, log_needed{{41}, {2}, 4});
  const auto again = expect<verify_run>(manager_at);
  EXPECT_EQ(again.terms->grammar.text, schema);
  EXPECT_EQ(again.grammar_state, second.grammar_state);
  inject(manager_at, says(2, {'1'}));
  expect<session_text>(client);
  EXPECT_FALSE(expect<verify_run>(manager_at).terms);
}

TEST_F(life_of_an_edit, sends_the_whole_log_until_the_manager_has_answered) {
  open(10);
  wire.sent.clear();
  pass(microseconds{2'000'000});
  const auto again = expect<verify_run>(manager_at);
  EXPECT_EQ(again.round.from, 0u);
  EXPECT_EQ(again.round.tail, (std::vector<token>{'a', 'b', 'c'}));
  inject(manager_at, says(1, {'d'}));
  wire.sent.clear();
  inject(drafter_at, proposal{.session = {41}, .round = {2}, .tokens = {'e'}});
  EXPECT_EQ(expect<verify_run>(manager_at).round.from, 4u);
  constexpr auto other_at = actor::make_address(9, 1, 4);
  for (int i = 0; i < 2; ++i) {
    inject({}, session_placed{.session = {41}, .manager = other_at, .ask_again = true});
    if (i == 0) expect<release_sequence>(manager_at);
    const auto moved = expect<verify_run>(other_at);
    EXPECT_EQ(moved.round.from, 0u) << i;
    EXPECT_EQ(moved.round.tail.size(), 4u);
  }
}

TEST_F(life_of_an_edit, takes_no_answer_that_is_for_another_session) {
  open(10);
  wire.sent.clear();
  auto foreign = says(1, {'z'});
  foreign.sequence = {40};
  inject(manager_at, foreign);
  inject(manager_at, refused{{40}, {errc::internal, "not yours"}});
  inject(manager_at, log_needed{.sequence = {40}, .round = {1}});
  EXPECT_TRUE(wire.sent.empty());
  inject(manager_at, says(1, {'d'}));
  EXPECT_EQ(expect<session_text>(client).text, "d");
  expect<propose>(drafter_at);
  inject(drafter_at, proposal{.session = {40}, .round = {2}, .tokens = {'e'}});
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(life_of_an_edit, fails_with_a_reason_when_the_target_stays_silent) {
  open(10);
  wire.sent.clear();
  pass(microseconds{61'000'000});
  while (wire.take<verify_run>()) {
  }
  const auto end = expect<session_finished>(client);
  EXPECT_EQ(end.reason, finish_reason::failed);
  ASSERT_TRUE(end.why_not);
  EXPECT_EQ(end.why_not->code, errc::not_ready);
}

TEST_F(life_of_an_edit, leaves_without_a_word_when_cancelled) {
  open(10);
  wire.sent.clear();
  inject(client, cancel_session{});
  expect<release_sequence>(manager_at);
  expect<forget>(drafter_at);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_EQ(w.find(who), nullptr);
}

}  // namespace
}  // namespace redline::actors
