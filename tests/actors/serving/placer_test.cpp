#include "actors/serving/placer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/log.hpp"
#include "runtime/base/token_chain.hpp"
#include "tests/support/one_actor.hpp"

namespace redline::actors {
namespace {

constexpr auto session_at = actor::make_address(1, 1, 40);
constexpr auto other_session_at = actor::make_address(1, 1, 41);
constexpr auto gateway_at = actor::make_address(1, 1, 2);
constexpr auto models_at = actor::make_address(1, 1, 12);
const pool_layout layout{
    .manager_worker = 1, .drafter_worker = 4, .manager = 4, .drafter = 6, .header_worker = 1, .header = 10};

class placer_test : public test::one_actor<placer> {
 protected:
  placer_test() : one_actor(1, 1) {
    configure_log(log_level::off, log_format::text);
    placer_options options{.layout = layout,
                           .why_unfit = [](const process_card& c) -> std::optional<std::string> {
                             if (c.vocabulary == 2) return std::nullopt;
                             return "another vocabulary";
                           },
                           .models = models_at,
                           .patience = microseconds{2'000'000}};
    who = w.add<placer>(11, "placer", {64, 64},
                        [options](actor::actor_context& c) { return std::make_unique<placer>(c, options); });
    run();
  }
  ~placer_test() override { configure_log(log_level::info, log_format::text); }

  static process_card card(const std::string& numerics = "exact", std::uint64_t model = 7) {
    return {.name = "m",
            .has_target = true,
            .model = model,
            .vocabulary = 2,
            .numerics = numerics,
            .running_max = 8,
            .waiting_max = 8};
  }
  void come(actor::process_number process, const process_card& c = card(), bool ready = true) {
    inject({}, actor::peer_state{process, true, {}, actor::encode(c), process * 100U});
    if (ready) inject(layout.manager_in(process), scheduler_report{.ready = true});
  }
  void go(actor::process_number process) { inject({}, actor::peer_state{process, false, "it is gone"}); }
  void ask(const place_session& m, actor::address from = session_at) { inject(from, m); }

  /// Returns the last message of this kind to this actor and removes the earlier ones as well.
  template<actor::message M>
  std::optional<M> last(actor::address to) {
    std::optional<M> found;
    std::erase_if(wire.sent, [&](const actor::frame& f) {
      if (f.head.to != to || f.head.id != M::id) return false;
      found = *actor::decode<M>(f.body);
      return true;
    });
    return found;
  }
  actor::process_number place(actor::address session = session_at) {
    const auto m = last<session_placed>(session);
    return m ? actor::process_of(m->manager) : 0;
  }
};

TEST_F(placer_test, places_an_answer_with_a_worker_that_runs_its_model) {
  come(5, card("exact", 8));
  come(6);
  ask({.session = {1}, .model = 7});
  const auto m = last<session_placed>(session_at);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->manager, layout.manager_in(6));
  EXPECT_EQ(m->drafter.value, 0U);
  EXPECT_EQ(m->numerics, numerics_id("exact"));
}

TEST_F(placer_test, places_no_answer_after_a_long_prompt_where_another_worker_is_free) {
  come(5);
  come(6);
  inject(layout.manager_in(5),
         scheduler_report{.ready = true, .running_count = 1, .pending_rows = 5000, .prompt_row_ns = 1'000'000});
  inject(layout.manager_in(6),
         scheduler_report{.ready = true, .running_count = 4, .pending_rows = 4, .prompt_row_ns = 1'000'000});
  for (std::uint64_t i = 1; i <= 6; ++i) {
    ask({.session = {i}, .model = 7});
    EXPECT_EQ(place(), 6U);
  }
}

TEST_F(placer_test, places_no_answer_where_its_sequence_has_no_room) {
  auto small = card();
  small.context = 100;
  auto large = card();
  large.context = 1000;
  come(5, small);
  come(6, large);
  for (int i = 0; i < 10; ++i) {
    ask({.session = {1}, .model = 7, .tokens_max = 101});
    EXPECT_EQ(place(), 6U);
    inject(session_at, leave_place{{1}});
  }
}

TEST_F(placer_test, tells_where_models_are_and_offers_one_without_workers_for_a_while) {
  come(5);
  const auto found = last<fetch_model>(models_at);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->card.model, 7U);
  EXPECT_EQ(found->source, actor::make_address(5, 1, 10));
  go(5);
  pass(microseconds{60'000'000});
  EXPECT_FALSE(last<lose_model>(models_at));
  pass(microseconds{600'000'000});
  EXPECT_EQ(last<lose_model>(models_at)->model, 7U);
}

TEST_F(placer_test, says_when_no_worker_has_some_numerics_any_longer) {
  come(5);
  come(6, card("amx"));
  go(6);
  pass(microseconds{20'000'000});
  EXPECT_FALSE(last<lose_model>(models_at)) << "it may return";
  pass(microseconds{20'000'000});
  const auto lost = last<lose_model>(models_at);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->model, 7U);
  EXPECT_EQ(lost->numerics, "amx");
}

TEST_F(placer_test, waits_for_a_worker_and_says_so_when_none_comes_in_time) {
  ask({.session = {1}, .model = 7});
  pass(microseconds{1'000'000});
  EXPECT_EQ(place(), 0U);
  come(5, card(), false);
  pass(microseconds{500'000});
  EXPECT_EQ(place(), 0U) << "it is loading";
  pass(microseconds{1'000'000});
  const auto no = last<no_place>(session_at);
  ASSERT_TRUE(no);
  EXPECT_EQ(no->why.code, errc::unreachable);
  EXPECT_GT(no->retry_after_ms, 0U);
}

TEST_F(placer_test, places_those_who_wait_as_soon_as_a_worker_is_ready) {
  ask({.session = {1}, .model = 7});
  come(5);
  EXPECT_EQ(place(), 5U);
}

TEST_F(placer_test, moves_an_answer_when_its_worker_is_lost_to_one_that_gives_the_same_bits) {
  come(5);
  come(6, card("amx"));
  come(7);
  for (int i = 0; i < 20; ++i) {
    ask({.session = {1}, .model = 7, .numerics = numerics_id("exact")});
    const auto first = place();
    ASSERT_TRUE(first == 5 || first == 7);
    go(first);
    EXPECT_EQ(place(), 12 - first);
    come(5);
    come(7);  // its report says that it is idle
    (void)place();
    inject(session_at, leave_place{{1}});
  }
}

TEST_F(placer_test, keeps_the_numerics_of_an_answer_though_others_have_room) {
  come(5, card("amx"));
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(last<session_placed>(session_at)->numerics, numerics_id("amx"));
  ask({.session = {1}, .model = 7, .numerics = numerics_id("amx")});
  EXPECT_EQ(place(), 5U);
  come(6);
  go(5);
  EXPECT_EQ(place(), 0U);
  pass(microseconds{3'000'000});
  EXPECT_TRUE(last<no_place>(session_at));
}

TEST_F(placer_test, moves_answers_away_from_a_worker_that_drains) {
  come(5);
  come(6);
  ask({.session = {1}, .model = 7});
  const auto first = place();
  auto draining = card();
  draining.is_draining = true;
  inject({}, actor::peer_state{first, true, {}, actor::encode(draining), 1});
  EXPECT_EQ(place(), 11 - first);
  ask({.session = {2}, .model = 7}, other_session_at);
  EXPECT_EQ(place(other_session_at), 11 - first);
}

TEST_F(placer_test, places_elsewhere_what_a_session_says_is_of_no_use) {
  come(5);
  come(6);
  ask({.session = {1}, .model = 7});
  const auto first = place();
  ask({.session = {1}, .model = 7, .not_process = first});
  EXPECT_EQ(place(), 11 - first);
  // When neither can be used, the placer waits for a moment, so that a session does not ask in a loop.
  ask({.session = {1}, .model = 7, .not_process = 11 - first});
  EXPECT_EQ(place(), 0U);
  pass(microseconds{300'000});
  EXPECT_NE(place(), 0U);
}

TEST_F(placer_test, has_a_session_ask_again_whose_worker_was_out_of_reach_for_a_moment) {
  come(5);
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 5U);
  come(5);
  const auto again = last<session_placed>(session_at);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->manager, layout.manager_in(5));
  EXPECT_TRUE(again->ask_again);
}

/// The chains of a prompt of 1024 equal tokens.
std::vector<std::uint64_t> some_chains(token first) { return chain_prefixes(std::vector<token>(1024, first)); }
std::vector<std::uint64_t> keys_of(tenant_id scope, std::vector<std::uint64_t> chains) {
  for (auto& chain : chains) chain = prefix_key(scope, chain);
  return chains;
}

TEST_F(placer_test, places_an_answer_where_its_prompt_is_kept_though_another_gateway_had_it_computed) {
  for (actor::process_number p = 5; p < 21; ++p) come(p);
  const auto chains = some_chains(3);
  const place_session asked{.session = {1}, .model = 7, .prompt_tokens = 1024, .prefixes = chains, .scope = {9}};
  inject(layout.manager_in(11), kept_prefixes{.revision = 1, .is_all = true, .added = keys_of({9}, chains)});
  inject(layout.manager_in(12), kept_prefixes{.revision = 1, .is_all = true, .added = keys_of({8}, chains)});
  ask(asked);
  EXPECT_EQ(place(), 11U) << "not where another tenant's prompt is";
  inject(layout.manager_in(99), kept_prefixes{.revision = 1, .is_all = true, .added = keys_of({9}, chains)});
}

TEST_F(placer_test, takes_any_tenants_prefix_where_workers_share_them_all) {
  auto sharing = card();
  sharing.sharing = prefix_sharing::all;
  for (actor::process_number p = 5; p < 21; ++p) come(p, sharing);
  const auto chains = some_chains(3);
  inject(layout.manager_in(11), kept_prefixes{.revision = 1, .is_all = true, .added = keys_of({}, chains)});
  ask({.session = {1}, .model = 7, .prompt_tokens = 1024, .prefixes = chains, .scope = {9}});
  EXPECT_EQ(place(), 11U);
}

TEST_F(placer_test, asks_workers_once_a_second_what_has_changed_of_what_they_keep) {
  come(5);
  EXPECT_EQ(last<read_kept>(layout.manager_in(5))->revision, 0U);
  inject(layout.manager_in(5), kept_prefixes{.revision = 41, .is_all = true});
  pass(microseconds{500'000});
  EXPECT_FALSE(last<read_kept>(layout.manager_in(5)));
  pass(microseconds{600'000});
  EXPECT_EQ(last<read_kept>(layout.manager_in(5))->revision, 41U);
  go(5);
  come(5);
  EXPECT_EQ(last<read_kept>(layout.manager_in(5))->revision, 0U) << "it may be a different one";
}

TEST_F(placer_test, gives_draft_workers_to_all_targets_and_others_for_lost_ones) {
  come(5);
  for (const actor::process_number p : {8U, 9U}) {
    come(p, {.has_draft = true, .vocabulary = 2}, false);
  }
  ask({.session = {1}, .model = 7, .wants_draft = true});
  const auto m = last<session_placed>(session_at);
  ASSERT_TRUE(m);
  const auto first = actor::process_of(m->drafter);
  ASSERT_TRUE(first == 8 || first == 9);
  go(first);
  const auto next = last<session_placed>(session_at);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->drafter, layout.drafter_in(17 - first));
  EXPECT_FALSE(next->ask_again);
  go(17 - first);
  EXPECT_FALSE(last<session_placed>(session_at)) << "it drafts without a model";
}

TEST_F(placer_test, uses_no_worker_that_does_not_fit_and_says_why) {
  auto foreign = card();
  foreign.vocabulary = 3;
  come(5, foreign);
  ask({.session = {1}, .model = 7});
  inject(gateway_at, report_status{});
  const auto r = last<scheduler_report>(gateway_at);
  ASSERT_TRUE(r);
  EXPECT_FALSE(r->ready);
  EXPECT_EQ(r->why_not, "another vocabulary");
  pass(microseconds{3'000'000});
  EXPECT_NE(last<no_place>(session_at)->why.context.find("another vocabulary"), std::string::npos);
}

TEST_F(placer_test, tells_who_looks_what_people_call_its_workers) {
  auto named = card();
  named.label = "box-7:4711";
  come(5, named);
  auto hostile = card();
  hostile.label = "\x1b[2J" + std::string(100, 'x');
  come(6, hostile);
  for (const actor::process_number p : {5U, 6U}) {
    inject(layout.manager_in(p), scheduler_report{.ready = true, .workers = {{.process = p}}});
  }
  inject(gateway_at, report_status{true});
  const auto workers = last<scheduler_report>(gateway_at)->workers;
  ASSERT_EQ(workers.size(), 2U);
  EXPECT_EQ(workers[0].label, "box-7:4711");
  EXPECT_EQ(workers[1].label, "??2J" + std::string(60, 'x'));
  configure_log(log_level::info, log_format::text);
  testing::internal::CaptureStderr();
  go(5);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("lost worker box-7:4711 (5): it is gone"), std::string::npos);
}

TEST_F(placer_test, says_what_its_pool_lacks) {
  const auto why = [&] {
    inject(gateway_at, report_status{});
    return last<scheduler_report>(gateway_at)->why_not;
  };
  EXPECT_EQ(why(), "no broker has answered yet");
  inject({}, actor::peer_state{0, false, "the broker at ipc://x does not answer"});
  EXPECT_EQ(why(), "the broker at ipc://x does not answer");
  inject({}, actor::peer_state{0, true});
  EXPECT_EQ(why(), "no worker has joined the pool");
  auto drafter = card();
  drafter.has_target = false;
  come(4, drafter, false);
  EXPECT_EQ(why(), "no worker has joined the pool") << "a worker that only drafts answers no request";
  come(5, card(), false);
  EXPECT_EQ(why(), "") << "it is loading";
  come(5, card());
  EXPECT_EQ(why(), "");
  auto draining = card();
  draining.is_draining = true;
  come(5, draining);
  EXPECT_EQ(why(), "all workers of the pool are shutting down");
  go(5);
  EXPECT_EQ(why(), "the last worker is gone: it is gone");
}

TEST_F(placer_test, reports_its_pool_as_one_manager) {
  come(5);
  come(6, card(), false);
  inject(layout.manager_in(5),
         scheduler_report{.ready = true, .running_count = 2, .batches_total = 10, .queried_total = 7});
  inject(layout.manager_in(6),
         scheduler_report{.ready = false, .running_count = 3, .batches_total = 1, .queried_total = 1});
  inject(gateway_at, report_status{});
  const auto r = last<scheduler_report>(gateway_at);
  ASSERT_TRUE(r);
  EXPECT_TRUE(r->ready);
  EXPECT_EQ(r->running_count, 5U);
  EXPECT_EQ(r->batches_total, 10U) << "a worker's earlier work does not count for the gateway";
  EXPECT_EQ(r->queried_total, 7U);
}

TEST_F(placer_test, counts_work_once_though_workers_go_and_come_back) {
  come(5);
  inject(layout.manager_in(5),
         scheduler_report{.ready = true, .batches_total = 10, .rows_total = 30, .experts_total = 90});
  go(5);
  const auto counted = [&] {
    inject(gateway_at, report_status{});
    return *last<scheduler_report>(gateway_at);
  };
  EXPECT_EQ(counted().batches_total, 10U);
  inject({}, actor::peer_state{5, true, {}, actor::encode(card()), 500});
  inject(layout.manager_in(5),
         scheduler_report{.ready = true, .batches_total = 12, .rows_total = 36, .experts_total = 96});
  EXPECT_EQ(counted().batches_total, 10U);
  inject(layout.manager_in(5),
         scheduler_report{.ready = true, .batches_total = 15, .rows_total = 45, .experts_total = 105});
  const scheduler_report last_counted = counted();
  EXPECT_EQ(last_counted.batches_total, 13U);
  EXPECT_EQ(last_counted.experts_total, 99U);
}

TEST_F(placer_test, goes_on_with_other_bits_only_before_the_first_token) {
  come(5, card("amx"));
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(last<session_placed>(session_at)->numerics, numerics_id("amx"));
  come(6);
  go(5);
  EXPECT_EQ(place(), 6U) << "nothing was reported yet";
  come(5, card("amx"));
  ask({.session = {1}, .model = 7, .numerics = numerics_id("exact"), .not_process = 6});
  EXPECT_EQ(place(), 0U);
}

TEST_F(placer_test, waits_for_a_worker_of_the_numerics_that_an_answer_began_with) {
  come(5, card("amx"));
  ask({.session = {1}, .model = 7, .numerics = numerics_id("exact")});
  EXPECT_EQ(place(), 0U) << "the only worker would answer differently";
  come(6);
  EXPECT_EQ(place(), 6U);
  go(6);
  pass(microseconds{3'000'000});
  const auto no = last<no_place>(session_at);
  ASSERT_TRUE(no);
  EXPECT_GT(no->retry_after_ms, 0U);
}

TEST_F(placer_test, moves_the_answers_of_a_worker_that_is_connected_and_says_nothing) {
  come(5);
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 5U);
  come(6);
  for (int i = 0; i < 30; ++i) {
    pass(microseconds{250'000});
    inject(layout.manager_in(6), scheduler_report{.ready = true});
  }
  EXPECT_EQ(place(), 6U);
}

TEST_F(placer_test, leaves_answers_at_the_only_worker_while_that_drains) {
  come(5);
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 5U);
  auto draining = card();
  draining.is_draining = true;
  inject({}, actor::peer_state{5, true, {}, actor::encode(draining), 1});
  for (int i = 0; i < 40; ++i) {
    pass(microseconds{250'000});
    inject(layout.manager_in(5), scheduler_report{.ready = true});
  }
  EXPECT_FALSE(last<no_place>(session_at)) << "it is served";
  come(6);
  pass(microseconds{300'000});
  EXPECT_EQ(place(), 6U);
}

TEST_F(placer_test, fills_the_first_worker_that_comes_back_no_further_than_it_has_room) {
  for (std::uint64_t i = 1; i <= 40; ++i)
    ask({.session = {i}, .model = 7}, actor::make_address(1, 1, 100 + static_cast<std::uint32_t>(i)));
  come(5);
  const auto count = [&](actor::process_number p) {
    std::size_t placed = 0;
    for (const auto& f : wire.sent) {
      if (f.head.id != session_placed::id) continue;
      placed += actor::process_of(actor::decode<session_placed>(f.body)->manager) == p ? 1U : 0U;
    }
    return placed;
  };
  EXPECT_EQ(count(5), 16U) << "running slots and waiting slots";
  come(6);
  EXPECT_EQ(count(6), 16U);
}

TEST_F(placer_test, hears_all_losses_before_it_looks_for_places) {
  for (const actor::process_number p : {5U, 6U, 7U}) come(p);
  ask({.session = {1}, .model = 7});
  const auto first = place();
  // All are lost at once, as when the last broker ends.
  for (const actor::process_number p : {5U, 6U, 7U}) {
    w.deliver(test::frame_of(who.where, {}, actor::peer_state{p, false, "no broker is connected to it"}));
  }
  run();
  EXPECT_NE(first, 0U);
  EXPECT_FALSE(last<session_placed>(session_at)) << "not from one lost worker to the next";
}

TEST_F(placer_test, forgets_sessions_that_cannot_be_reached) {
  come(5);
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 5U);
  inject({}, actor::undeliverable{session_at, session_placed::id, {errc::unreachable, "gone"}});
  come(5);
  EXPECT_EQ(place(), 0U);
}

TEST_F(placer_test, does_not_believe_a_card_that_is_none) {
  inject({}, actor::peer_state{5, true, {}, "\xc1", 1});
  inject(layout.manager_in(5), scheduler_report{.ready = true});
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 0U);
}

TEST_F(placer_test, says_by_what_right_models_have_their_names) {
  const auto since = [](std::int64_t seconds, std::uint64_t model = 7) {
    auto c = card("exact", model);
    c.since = seconds;
    return c;
  };
  come(5, since(200));
  EXPECT_EQ(last<model_standing>(models_at), (model_standing{7, true, 200}));
  come(6, since(100));
  EXPECT_EQ(last<model_standing>(models_at), (model_standing{7, true, 100})) << "the longest counts";
  come(8, since(50, 9));
  EXPECT_EQ(last<model_standing>(models_at), (model_standing{9, true, 50}));
  come(5, since(200));
  EXPECT_EQ(last<model_standing>(models_at), std::nullopt) << "nothing changed";
  auto leaving = since(100);
  leaving.is_draining = true;
  come(6, leaving);
  EXPECT_EQ(last<model_standing>(models_at), (model_standing{7, true, 200}));
  go(5);
  EXPECT_EQ(last<model_standing>(models_at), (model_standing{7, false, 0}));
}

TEST_F(placer_test, an_answer_that_comes_as_the_last_worker_leaves_is_still_made_there) {
  come(5);
  come(6, card("exact", 8));
  auto leaving = card();
  leaving.is_draining = true;
  come(5, leaving);
  ask({.session = {1}, .model = 7});
  EXPECT_EQ(place(), 5U);
  pass(microseconds{300'000});
  ask({.session = {2}, .model = 7}, other_session_at);
  EXPECT_EQ(place(other_session_at), 0U) << "it may disappear at any moment";
  come(9);
  pass(microseconds{300'000});
  EXPECT_EQ(place(), 9U) << "it moves on";
  EXPECT_EQ(place(other_session_at), 9U);
}

}  // namespace
}  // namespace redline::actors
