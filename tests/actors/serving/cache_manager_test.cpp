// The cache manager's part in an edit, message by message; the test acts as sessions and target model.

#include "actors/serving/cache_manager.hpp"

#include <gtest/gtest.h>

#include <set>

#include "actors/serving/target_model.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/one_actor.hpp"

namespace redline::actors {
namespace {

constexpr auto target_at = actor::make_address(2, 3, 5);
constexpr auto session_at = actor::make_address(1, 1, 40);
constexpr std::uint32_t pages_count = 8;

class cache_manager_test : public test::one_actor<cache_manager> {
 protected:
  explicit cache_manager_test(scheduler_options options = {}, kv::pool_size size = pages_count) : one_actor(2, 1) {
    configure_log(log_level::off, log_format::text);
    options.limits = {.running_max = 8, .waiting_max = 8, .tokens_max = 250};
    options.budget = {.rows_max = 512, .prompt_chunk_rows_max = 128};
    options.automata = automata;
    who = w.add<cache_manager>(4, "cache manager", {64, 64}, [options, size](actor::actor_context& c) {
      return std::make_unique<cache_manager>(c, options, size, actor::actor_ref<target_model>{target_at});
    });
    expect<announce_target>(target_at);
  }
  ~cache_manager_test() override {
    w.find(who)->check_integrity();
    configure_log(log_level::info, log_format::text);
  }

  void start_target() {
    inject(target_at, target_ready{.context = 250,
                                   .vocabulary = 300,
                                   .rows_max = 512,
                                   .pages_count = pages_count,
                                   .start_id = target_start_id});
  }

  struct question {
    std::uint64_t sequence = 1;
    std::uint64_t round = 1;
    std::uint32_t from = 0;
    std::vector<token> tail{};
    std::vector<token> draft{};
    bool prefill_only = false;
    std::uint64_t tenant = 1;
    sampling::sampling_params sampling{};
    std::uint32_t prompt_count = 0;
    std::uint64_t prefix_scope = 0;
    grammar::constraint grammar{};  // if set, the manager has it, and the round carries no terms
    actor::address session = session_at;
    std::vector<scheduler::log_splice> splices{};
  };
  void ask(const question& q) { inject(q.session, round_of(q)); }
  static verify_run round_of(const question& q) {
    using scheduler::round_kind;
    verify_run m{.round = {.sequence = {q.sequence},
                           .number = {q.round},
                           .kind = q.prefill_only ? round_kind::prefill : round_kind::answer,
                           .splices = q.splices,
                           .from = q.from,
                           .tail = q.tail,
                           .draft = q.draft},
                 .prompt_count = q.prompt_count,
                 .grammar_state = q.grammar.state};
    if (q.grammar.kind != grammar::grammar_kind::known) {
      m.terms = {
          .facts = {{q.tenant}, 250}, .prefix_scope = q.prefix_scope, .sampling = q.sampling, .grammar = q.grammar};
    }
    return m;
  }
  /// Completes the current batch and returns the session's answer.
  verified answered() {
    complete();
    return expect<verified>(session_at);
  }
  forward_batch placed() { return last = expect<forward_batch>(target_at); }
  /// The result of this batch: each run that wants logits accepts its whole draft and gets one more token.
  batch_done done_with(const forward_batch& m) {
    batch_done done{.batch = m.batch, .elapsed_us = 10};
    for (const batch_run& run : m.runs) {
      run_result r{.sequence = run.sequence};
      if (run.logits_begin < run.tokens.size()) {
        r.accepted_count = run.draft_count;
        r.tokens.assign(run.draft_count + 1, 50);
      }
      done.results.push_back(r);
    }
    return done;
  }
  void complete() { inject(target_at, done_with(last)); }
  /// The last batch did not reach the target model.
  void lose_batch(failure why) {
    inject({}, actor::undeliverable{target_at, forward_batch::id, std::move(why), last.batch});
  }
  [[nodiscard]] std::uint32_t length(std::uint64_t sequence = 1) { return w.find(who)->memory().length({sequence}); }
  [[nodiscard]] std::uint32_t pages_free() { return w.find(who)->memory().free()[kv::kind::page]; }
  static std::uint32_t count_of(const std::vector<kv::piece>& table) {
    std::uint32_t count = 0;
    for (const auto& piece : table) count += piece.count;
    return count;
  }
  static std::vector<token> text(std::size_t count) {
    std::vector<token> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = static_cast<token>(i % 200);
    return tokens;
  }

  forward_batch last;
  std::uint64_t target_start_id = 0;
  const std::shared_ptr<grammar::automaton_store> automata = std::make_shared<grammar::automaton_store>();
};

class with_states : public cache_manager_test {
 protected:
  with_states() : cache_manager_test(with_messages(), with_slots()) {}
  static scheduler_options with_messages() {
    scheduler_options options;
    options.message_start = 250;
    return options;
  }
  static kv::pool_size with_slots() {
    kv::pool_size size(pages_count);
    size.state_slots = 3;
    size.state_copies = 3;
    size.state_records = 5;
    return size;
  }
};

TEST_F(with_states, a_prompt_whose_last_message_differs_continues_before_it) {
  start_target();
  auto prompt = text(100);
  prompt[0] = prompt[70] = prompt[90] = 250;
  ask({.tail = prompt});
  const forward_batch batch = placed();
  const kv::state_use& use = batch.runs.at(0).memory.state;
  ASSERT_EQ(use.snapshots.size(), 1U) << "both messages begin in one page";
  EXPECT_EQ(use.snapshots[0].rows, 64U);
  complete();
  expect<verified>(session_at);
  prompt[72] = 7;
  ask({.sequence = 2, .tail = prompt});
  EXPECT_EQ(placed().runs.at(0).first_position, 64);
  complete();
  expect<verified>(session_at);
}

TEST_F(cache_manager_test, tells_a_new_session_that_its_round_was_taken_when_the_answer_takes_long) {
  ask({.tail = {1, 2, 3}, .prompt_count = 3});
  pass(microseconds{500'000});
  expect<announce_target>(target_at);  // the target model is not up
  EXPECT_EQ(expect<run_pending>(session_at).round.value, 1u);
  pass(microseconds{500'000});
  expect<announce_target>(target_at);
  EXPECT_FALSE(wire.take<run_pending>()) << "once";
}

TEST_F(cache_manager_test, a_round_goes_to_the_target_model_with_its_memory_and_back) {
  ask({.tail = {1, 2, 3}, .draft = {9, 8}});
  EXPECT_TRUE(wire.sent.empty()) << "the target model is not up";
  start_target();
  const auto m = placed();
  ASSERT_EQ(m.runs.size(), 1u);
  EXPECT_EQ(m.runs[0].tokens, (std::vector<token>{1, 2, 3, 9, 8}));
  EXPECT_EQ(m.runs[0].memory.table, (std::vector<kv::piece>{{0, 5, 0}}));
  EXPECT_EQ(m.runs[0].draft_count, 2u);
  EXPECT_EQ(m.runs[0].logits_begin, 2u);
  EXPECT_TRUE(wire.sent.empty());
  complete();
  const auto v = expect<verified>(session_at);
  EXPECT_EQ(v.round.value, 1u);
  EXPECT_EQ(v.tokens, (std::vector<token>{50, 50, 50}));
  EXPECT_EQ(v.accepted_count(), 2u);
  EXPECT_TRUE(wire.sent.empty());
  complete();
  EXPECT_TRUE(wire.sent.empty()) << "the same answer again";
}

TEST_F(cache_manager_test, one_batch_is_out_at_a_time_and_the_next_takes_all_who_came_meanwhile) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  ask({.sequence = 2, .tail = {2}});
  ask({.sequence = 3, .tail = {3}});
  EXPECT_TRUE(wire.sent.empty());
  complete();
  EXPECT_EQ(expect<verified>(session_at).sequence.value, 1u);
  EXPECT_EQ(placed().runs.size(), 2u);
}

TEST_F(cache_manager_test, takes_back_what_refused_drafts_and_edits_leave_of_a_table) {
  start_target();
  ask({.sequence = 1, .tail = {1, 2, 3}, .draft = {9, 8}});
  auto done = done_with(placed());
  EXPECT_EQ(length(), 5u);
  done.results[0].accepted_count = 0;
  done.results[0].tokens = {50};
  inject(target_at, done);
  expect<verified>(session_at);
  EXPECT_EQ(length(), 3u);
  ask({.round = 2,
       .from = 5,
       .splices = {{.at = 1, .removed_count = 1, .tokens = {5, 6}, .policy = kv::splice_policy::pie}}});
  const auto m = placed();
  EXPECT_EQ(m.runs.at(0).tokens, (std::vector<token>{5, 6})) << "the hole first";
  EXPECT_EQ(count_of(m.runs[0].memory.table), 3u) << "up to the run's end";
  complete();
  const auto rest = placed();
  EXPECT_EQ(rest.runs.at(0).tokens, std::vector<token>{50});
  EXPECT_EQ(rest.runs[0].memory.table, (std::vector<kv::piece>{{0, 1, 0}, {3, 2, 0}, {2, 1, 1}, {5, 1, 1}}))
      << "moved, not computed";
}

TEST_F(cache_manager_test, keys_that_are_turned_travel_with_the_next_batch) {
  start_target();
  ask({.tail = text(20)});
  placed();
  complete();
  expect<verified>(session_at);
  ask({.round = 2, .from = 17, .splices = {{.at = 5, .removed_count = 4, .policy = kv::splice_policy::eager}}});
  const auto m = placed();
  ASSERT_EQ(m.moves.size(), 1u);
  EXPECT_EQ(m.moves[0].count, 11u);
  EXPECT_EQ(m.moves[0].turn, -4);
  complete();
  expect<verified>(session_at);
  ask({.round = 3, .from = 18});
  EXPECT_TRUE(placed().moves.empty());
}

TEST_F(cache_manager_test, computes_everything_again_when_keys_were_not_turned) {
  start_target();
  ask({.tail = text(20)});
  placed();
  complete();
  expect<verified>(session_at);
  ask({.sequence = 2, .tail = {1}});
  placed();
  complete();
  expect<verified>(session_at);
  ask({.round = 2, .from = 17, .splices = {{.at = 5, .removed_count = 4, .policy = kv::splice_policy::eager}}});
  ASSERT_FALSE(placed().moves.empty());
  ask({.sequence = 2, .round = 2, .from = 2});
  inject(target_at, batch_done{.batch = last.batch, .why_not = failure{errc::malformed_message, "no such slot"}});
  EXPECT_EQ(expect<refused>(session_at).sequence.value, 1u);
  EXPECT_EQ(placed().runs.at(0).tokens, (std::vector<token>{1, 50})) << "sequence 2 has no KV any more";
}

TEST_F(cache_manager_test, computes_a_prompt_as_far_as_there_is_memory) {
  start_target();
  ask({.sequence = 1, .tail = text(128)});
  placed();
  complete();
  expect<verified>(session_at);
  auto other = text(200);
  for (token& t : other) t += 1;
  ask({.sequence = 2, .tail = other});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 128u);
  EXPECT_EQ(pages_free(), 0u);
  complete();
  EXPECT_TRUE(wire.sent.empty()) << "the older one continues at any moment";
  inject(session_at, release_sequence{{1}});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 72u);
}

TEST_F(cache_manager_test, the_later_sequence_yields_and_is_computed_again) {
  start_target();
  for (std::uint64_t s = 1; s <= 2; ++s) {
    auto prompt = text(128);
    prompt[0] = static_cast<token>(s);
    ask({.sequence = s, .tail = prompt});
    placed();
    complete();
    expect<verified>(session_at);
  }
  EXPECT_EQ(pages_free(), 0u);
  ask({.sequence = 1, .round = 2, .from = 129});
  EXPECT_EQ(placed().runs.at(0).sequence.value, 1u);
  EXPECT_EQ(length(2), 0u);
  inject(session_at, report_status{});
  EXPECT_EQ(expect<scheduler_report>(session_at).preempted_total, 1u);
  ask({.sequence = 2, .round = 2, .from = 129});
  complete();
  expect<verified>(session_at);
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 96u) << "as far as the pages suffice";
  complete();
  EXPECT_TRUE(wire.sent.empty()) << "the older one continues at any moment";
  inject(session_at, release_sequence{{1}});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 33u);
}

TEST_F(cache_manager_test, refused_drafts_leave_room) {
  start_target();
  ask({.sequence = 1, .tail = text(224)});
  placed();
  complete();
  placed();
  complete();
  expect<verified>(session_at);
  ask({.sequence = 2, .tail = text(20), .draft = text(10)});
  auto done = done_with(placed());
  done.results[0].accepted_count = 0;
  done.results[0].tokens = {50};
  inject(target_at, done);
  expect<verified>(session_at);
  EXPECT_EQ(pages_free(), 0u);
  ask({.sequence = 2, .round = 2, .from = 21, .draft = text(60)});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 12u);
}

TEST_F(cache_manager_test, computes_everything_again_when_the_target_model_has_started) {
  start_target();
  ask({.tail = {1, 2, 3}});
  const auto before = placed();
  start_target();
  const auto again = placed();
  EXPECT_GT(again.batch, before.batch);
  EXPECT_EQ(again.runs.at(0).tokens, before.runs.at(0).tokens);
  inject(target_at, done_with(before));
  EXPECT_TRUE(wire.sent.empty()) << "an answer to the older batch is ignored";
  complete();
  expect<verified>(session_at);
}

TEST_F(cache_manager_test, knows_nothing_of_what_it_did_before_a_restart) {
  start_target();
  ask({.tail = {1, 2, 3}});
  const auto before = placed();
  w.deliver(test::frame_of(w.host_address(), {}, actor::restart_actor{who.where}));
  expect<announce_target>(target_at);
  start_target();
  inject(target_at, done_with(before));
  EXPECT_TRUE(wire.sent.empty());
  ask({.round = 2, .from = 4});
  EXPECT_EQ(expect<log_needed>(session_at).from, 0u);
  ask({.round = 2, .tail = {1, 2, 3, 50}});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 4u);
}

TEST_F(cache_manager_test, a_batch_that_the_target_refuses_ends_its_sequences_and_no_others) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  ask({.sequence = 2, .tail = {2}});
  inject(target_at, batch_done{.batch = last.batch, .why_not = failure{errc::malformed_message, "no such slot"}});
  const auto no = expect<refused>(session_at);
  EXPECT_EQ(no.sequence.value, 1u);
  EXPECT_EQ(no.why.context, "no such slot");
  EXPECT_EQ(length(1), 0u);
  EXPECT_EQ(placed().runs.at(0).sequence.value, 2u);
}

TEST_F(cache_manager_test, a_sequence_whose_numbers_overflow_ends_and_others_go_on) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  ask({.sequence = 2, .tail = {2}});
  ask({.sequence = 3, .tail = {3}, .draft = {4, 5}});
  complete();
  expect<verified>(session_at);
  auto done = done_with(placed());
  ASSERT_EQ(done.results.size(), 2u);
  done.results[1] = {.sequence = {3}, .why_not = failure{errc::internal, "no finite number"}};
  inject(target_at, done);
  EXPECT_EQ(expect<verified>(session_at).sequence.value, 2u);
  const auto no = expect<refused>(session_at);
  EXPECT_EQ(no.sequence.value, 3u);
  EXPECT_EQ(no.why.context, "no finite number");
  EXPECT_EQ(length(3), 0u);
  inject(session_at, report_status{});
  EXPECT_EQ(expect<scheduler_report>(session_at).overflowed_total, 1u);
}

TEST_F(cache_manager_test, counts_and_learns_the_experts_that_passes_touched) {
  inject(target_at, target_ready{.context = 250,
                                 .vocabulary = 300,
                                 .rows_max = 512,
                                 .pages_count = pages_count,
                                 .start_id = 5,
                                 .mixture = {.layers = 2, .experts = 64, .used = 8}});
  const cost::work_size wide{32, 32, 32, 32};
  const double before = w.find(who)->queue().cost().predict_experts(wide);
  EXPECT_GT(before, 100) << "of 128";
  ask({.sequence = 1, .tail = {1}, .draft = {2, 3, 4, 5, 6, 7}});
  auto done = done_with(placed());
  done.experts_count = 18;
  inject(target_at, done);
  expect<verified>(session_at);
  EXPECT_LT(w.find(who)->queue().cost().predict_experts(wide), before / 2);
  inject(session_at, report_status{});
  EXPECT_EQ(expect<scheduler_report>(session_at).experts_total, 18u);
}

TEST_F(cache_manager_test, answers_nobody_whose_sequence_was_released_in_flight) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  inject(session_at, release_sequence{{1}});
  EXPECT_EQ(length(1), 0u);
  ask({.sequence = 1, .tail = {5, 6}});
  complete();
  const auto fresh = placed();
  EXPECT_EQ(fresh.runs.at(0).tokens, (std::vector<token>{5, 6}));
}

TEST_F(cache_manager_test, a_later_round_overtakes_prefill_when_its_pass_ends) {
  start_target();
  ask({.round = 1, .tail = text(20), .prefill_only = true});
  placed();
  ask({.round = 2, .tail = text(20)});
  EXPECT_EQ(expect<run_pending>(session_at).round.value, 2u);
  complete();
  EXPECT_EQ(expect<prefilled>(session_at).round.value, 1u);
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 1u);
}

TEST_F(cache_manager_test, new_sequences_adopt_what_is_known_of_their_logs) {
  start_target();
  ask({.sequence = 1, .tail = text(70)});
  const auto slot = placed().runs.at(0).memory.table.at(0).first_slot;
  complete();
  EXPECT_EQ(expect<verified>(session_at).cached_count, 0u);
  inject(session_at, release_sequence{{1}});
  EXPECT_EQ(pages_free(), pages_count) << "for sequences that need them";
  ask({.sequence = 2, .tail = text(64)});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 32u) << "the last token is computed for its logits";
  complete();
  expect<verified>(session_at);
  ask({.sequence = 3, .tail = text(70), .tenant = 2});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 70u) << "another tenant";
  complete();
  expect<verified>(session_at);
  ask({.sequence = 4, .tail = text(70)});
  const auto m = placed();
  EXPECT_EQ(m.runs.at(0).tokens.size(), 6u);
  EXPECT_EQ(m.runs[0].memory.table.at(0).first_slot, slot);
  complete();
  EXPECT_EQ(expect<verified>(session_at).cached_count, 64u);
}

TEST_F(cache_manager_test, shares_prefixes_within_the_scope_that_a_round_names) {
  start_target();
  std::vector<std::size_t> rows;
  for (const std::uint64_t scope : {77, 78, 77, 0}) {
    ask({.sequence = rows.size() + 1, .tail = text(70), .prefix_scope = scope});
    rows.push_back(placed().runs.at(0).tokens.size());
    complete();
    expect<verified>(session_at);
    inject(session_at, release_sequence{{rows.size()}});
  }
  EXPECT_EQ(rows, (std::vector<std::size_t>{70, 70, 6, 70}));
}

TEST_F(cache_manager_test, asks_a_target_model_that_is_not_up_to_say_so_until_it_does) {
  pass(microseconds{1'000'000});
  expect<announce_target>(target_at);
  expect<announce_target>(target_at);
  start_target();
  wire.sent.clear();
  pass(microseconds{1'000'000});
  EXPECT_FALSE(wire.take<announce_target>());
}

TEST_F(cache_manager_test, tells_who_asked_before_the_target_model_was_there_when_it_is) {
  for (int i = 0; i < 2; ++i) {
    inject(session_at, report_status{});
    EXPECT_FALSE(expect<scheduler_report>(session_at).ready);
  }
  start_target();
  EXPECT_TRUE(expect<scheduler_report>(session_at).ready);
  EXPECT_TRUE(wire.sent.empty()) << "once";
}

TEST_F(cache_manager_test, goes_on_after_a_batch_that_did_not_reach_the_target_model) {
  target_start_id = 7;
  start_target();
  ask({.tail = {1, 2}});
  placed();
  lose_batch({errc::unreachable, "too many open files"});
  pass(microseconds{500'000});
  expect<announce_target>(target_at);
  expect<run_pending>(session_at);
  start_target();
  EXPECT_EQ(placed().runs.size(), 1u);
  complete();
  EXPECT_EQ(expect<verified>(session_at).round.value, 1u);
}

TEST_F(cache_manager_test, a_batch_that_can_never_reach_the_target_model_ends_its_sequences) {
  start_target();
  ask({.tail = {1, 2}});
  placed();
  lose_batch({errc::malformed_message, "too large"});
  EXPECT_EQ(expect<refused>(session_at).why.context, "too large");
  wire.sent.clear();
  ask({.sequence = 2, .tail = {3}});
  EXPECT_EQ(placed().runs.size(), 1u);
}

TEST_F(cache_manager_test, reports_how_many_sequences_somebody_still_asks_for) {
  start_target();
  const auto asking = [&] {
    wire.sent.clear();
    inject(session_at, report_status{});
    return expect<scheduler_report>(session_at).asking_count;
  };
  EXPECT_EQ(asking(), 0u);
  ask({.tail = {1, 2}});
  placed();
  complete();
  EXPECT_EQ(asking(), 1u);
  pass(microseconds{2'100'000});
  EXPECT_EQ(asking(), 0u) << "its session may have continued elsewhere, and its message may be lost";
}

TEST_F(cache_manager_test, shows_its_last_passes_to_who_asks_for_them) {
  start_target();
  constexpr std::size_t passes = worker_status::batches_max + 3;
  for (std::size_t i = 0; i < passes; ++i) {
    ask({.sequence = i + 1, .tail = {1, 2, 3}});
    placed();
    complete();
    inject(session_at, release_sequence{{i + 1}});
    wire.sent.clear();
  }
  inject(session_at, report_status{});
  EXPECT_TRUE(expect<scheduler_report>(session_at).workers.empty());
  inject(session_at, report_status{true});
  const auto report = expect<scheduler_report>(session_at);
  ASSERT_EQ(report.workers.size(), 1u);
  const worker_status& told = report.workers[0];
  EXPECT_EQ(told.batches_total, passes);
  ASSERT_EQ(told.batches.size(), worker_status::batches_max);
  EXPECT_EQ(told.batches.back().number, passes);
  EXPECT_EQ(told.batches.back().sequences, 1u);
  EXPECT_EQ(told.batches.back().prompt_rows, 3u);
  EXPECT_EQ(told.batches.back().decode_rows + told.batches.back().draft_rows, 0u);
}

TEST_F(cache_manager_test, does_not_let_sessions_wait_for_ever_for_a_target_model_that_is_silent) {
  for (const bool is_lost : {false, true}) {
    start_target();
    ask({.tail = {1, 2}});
    placed();
    if (is_lost) lose_batch({errc::unreachable, "gone"});
    wire.sent.clear();
    ask({.tail = {1, 2}});
    expect<run_pending>(session_at);
    pass(microseconds{61'000'000});
    wire.sent.clear();
    inject(session_at, report_status{});
    EXPECT_FALSE(expect<scheduler_report>(session_at).ready);
    ask({.tail = {1, 2}});
    const auto no = expect<refused>(session_at);
    EXPECT_EQ(no.why.code, errc::not_ready);
    EXPECT_GT(no.retry_after_ms, 0u);
    inject(session_at, release_sequence{{1}});
    wire.sent.clear();
  }
}

TEST_F(cache_manager_test, keeps_its_kv_when_the_same_target_model_says_again_that_it_is_ready) {
  target_start_id = 7;
  start_target();
  ask({.tail = {1, 2, 3}});
  placed();
  complete();
  expect<verified>(session_at);
  start_target();
  ask({.round = 2, .from = 4, .tail = {4}});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 2u);
  complete();
  target_start_id = 8;
  start_target();
  wire.sent.clear();
  ask({.round = 3, .from = 6, .tail = {5}});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 7u);
}

TEST_F(cache_manager_test, releases_the_sequences_of_a_process_that_was_lost) {
  start_target();
  ask({.tail = {1, 2, 3}});
  inject({}, actor::peer_state{actor::process_of(session_at), true});
  inject({}, actor::peer_state{3, false});
  EXPECT_TRUE(w.find(who)->queue().holds({1}));
  inject({}, actor::peer_state{actor::process_of(session_at), false});
  EXPECT_FALSE(w.find(who)->queue().holds({1}));
}

TEST_F(cache_manager_test, a_batch_answered_for_other_sequences_fails) {
  start_target();
  ask({.tail = {1, 2}});
  auto done = done_with(placed());
  done.results[0].sequence = {99};
  inject(target_at, done);
  EXPECT_EQ(expect<refused>(session_at).why.code, errc::internal);
}

class grammars : public cache_manager_test {
 protected:
  grammars() {
    target_start_id = 5;
    start_target();
  }
  static grammar::constraint at(std::uint32_t state) { return grammar::without_text({.state = {state}}); }
  grammar::grammar_kind kind(std::size_t run = 0) { return last.runs.at(run).grammar.kind; }
  const grammar::constraint text = grammar::text_constraint({.text = "{\"type\":\"object\"}"});
};

TEST_F(grammars, go_to_a_target_model_once) {
  ask({.tail = {1, 2, 3}, .grammar = text});
  EXPECT_EQ(placed().runs.at(0).grammar, text);
  const auto name = last.runs[0].grammar_name;
  answered();
  ask({.round = 2, .from = 4, .grammar = at(7)});
  EXPECT_EQ(placed().runs.at(0).grammar, at(7));
  EXPECT_EQ(last.runs[0].grammar_name, name);
  answered();
  ask({.sequence = 2, .tail = {4}, .grammar = text});
  EXPECT_EQ(placed().runs.at(0).grammar_name, name) << "the grammar of another sequence with the same text";
  EXPECT_EQ(kind(), grammar::grammar_kind::known);
  answered();
  ask({.sequence = 3, .tail = {4}, .grammar = grammar::text_constraint({.text = "{\"type\":\"null\"}"})});
  EXPECT_NE(placed().runs.at(0).grammar_name, name);
  EXPECT_EQ(kind(), grammar::grammar_kind::json);
  answered();
  target_start_id = 6;
  start_target();
  ask({.round = 3, .from = 5, .grammar = at(8)});
  EXPECT_EQ(placed().runs.at(0).grammar.text, text.text) << "this one has never received it";
  EXPECT_EQ(last.runs[0].grammar.state, (std::vector<std::uint32_t>{8}));
}

TEST_F(grammars, go_with_every_batch_to_a_target_model_that_does_not_say_which_it_is) {
  target_start_id = 0;
  start_target();
  for (std::uint64_t round = 1; round <= 3; ++round) {
    ask({.round = round,
         .from = round == 1 ? 0 : 2 + static_cast<std::uint32_t>(round),
         .tail = round == 1 ? std::vector<token>{1, 2, 3} : std::vector<token>{},
         .grammar = round == 1 ? text : at(7)});
    EXPECT_EQ(placed().runs.at(0).grammar.text, text.text) << round;
    answered();
  }
}

TEST_F(grammars, are_compiled_before_their_rounds_wait_for_a_pass) {
  const verify_run m = round_of({.tail = {1, 2, 3}, .grammar = text});
  w.deliver(test::frame_of(who.where, session_at, m));
  while (w.run_ready()) {
  }
  EXPECT_FALSE(wire.take<forward_batch>()) << "the grammar is being compiled";
  w.deliver(test::frame_of(who.where, session_at, m));
  while (w.run_ready()) {
  }
  ASSERT_EQ(wire.sent.size(), 2u) << "the end of one job, and what became of the round";
  run();
  EXPECT_EQ(expect<run_pending>(session_at).round.value, 1u);
  EXPECT_EQ(placed().runs.at(0).grammar, text);
  complete();
  expect<verified>(session_at);
  EXPECT_EQ(automata->find(text).use_count(), 3) << "the store, the manager, and this one";
}

TEST_F(grammars, that_nobody_waits_for_any_more_are_forgotten) {
  for (const bool is_released : {false, true}) {
    const auto schema = grammar::text_constraint({.text = is_released ? "{\"const\":1}" : "{\"const\":2}"});
    w.deliver(test::frame_of(who.where, session_at, round_of({.tail = {1, 2, 3}, .grammar = schema})));
    while (w.run_ready()) {
    }
    if (is_released)
      inject(session_at, release_sequence{{1}});
    else
      inject(session_at, give_up_round{{1}, {1}});
    EXPECT_TRUE(wire.sent.empty());
    EXPECT_FALSE(w.find(who)->queue().holds({1}));
  }
}

TEST_F(grammars, that_cannot_be_compiled_refuse_their_rounds) {
  ask({.tail = {1, 2, 3}, .grammar = grammar::text_constraint({.text = "{\"type\":7}"})});
  EXPECT_EQ(expect<refused>(session_at).why.code, errc::invalid_argument);
  EXPECT_FALSE(w.find(who)->queue().holds({1}));
  ask({.tail = {1, 2, 3}, .grammar = text});
  EXPECT_EQ(placed().runs.at(0).grammar, text);
}

TEST_F(grammars, go_once_with_a_batch) {
  ask({.tail = {1}});
  placed();
  for (const std::uint64_t sequence : {2, 3}) ask({.sequence = sequence, .tail = {1}, .grammar = text});
  answered();
  ASSERT_EQ(placed().runs.size(), 2u);
  EXPECT_EQ(kind(0), grammar::grammar_kind::json);
  EXPECT_EQ(kind(1), grammar::grammar_kind::known);
  EXPECT_EQ(last.runs[0].grammar_name, last.runs[1].grammar_name);
}

// A copied token is judged by its own probability, also in the row after the part of a span that a pass takes.
TEST_F(grammars, come_with_the_token_after_a_draft_that_is_cut) {
  ask({.tail = {1}});
  placed();
  const auto draft = cache_manager_test::text(100);
  for (const std::uint64_t sequence : {2, 3, 4}) {
    ask({.sequence = sequence, .tail = {1}, .draft = draft, .grammar = sequence < 4 ? text : grammar::constraint{}});
  }
  answered();
  ASSERT_EQ(placed().runs.size(), 3u);
  std::size_t cut = 0;
  for (const auto& run : last.runs) {
    const bool is_named = run.draft_count < draft.size() && run.sequence.value < 4;
    EXPECT_EQ(run.after_draft, is_named ? std::optional(draft[run.draft_count]) : std::nullopt);
    cut += is_named ? 1 : 0;
  }
  EXPECT_GT(cut, 0u);
}

TEST_F(grammars, that_the_target_model_lacks_go_with_the_same_runs_again) {
  ask({.tail = {1, 2, 3}, .grammar = text});
  placed();
  answered();
  ask({.round = 2, .from = 4, .draft = {8}, .grammar = at(7)});
  const auto first = placed();
  inject(target_at, batch_done{.batch = last.batch, .lacks_grammars = true});
  const auto again = placed();
  EXPECT_GT(again.batch, first.batch);
  EXPECT_EQ(again.runs.at(0).memory.table, first.runs.at(0).memory.table) << "the run's pages were returned";
  EXPECT_EQ(again.runs.at(0).tokens, first.runs.at(0).tokens);
  EXPECT_EQ(again.runs[0].grammar.text, text.text);
  EXPECT_EQ(again.runs[0].grammar.state, first.runs[0].grammar.state);
  EXPECT_EQ(answered().round.value, 2u);
  ask({.round = 3, .from = 6, .grammar = at(7)});
  placed();
  EXPECT_EQ(kind(), grammar::grammar_kind::known);
}

TEST_F(grammars, that_the_target_model_lacks_for_ever_end_their_sequences) {
  ask({.tail = {1, 2, 3}, .grammar = text});
  placed();
  const auto lacks = [&] { inject(target_at, batch_done{.batch = last.batch, .lacks_grammars = true}); };
  lacks();
  placed();
  lacks();
  EXPECT_EQ(expect<refused>(session_at).why.code, errc::internal);
}

TEST_F(grammars, that_were_lost_are_asked_for) {
  ask({.tail = {1, 2, 3}, .grammar = at(7)});
  EXPECT_EQ(expect<log_needed>(session_at).from, 0u) << "the sequence is unknown";
  ask({.tail = {1, 2, 3}, .grammar = text});
  placed();
  answered();
  constexpr auto another = actor::make_address(1, 1, 41);
  ask({.round = 2, .from = 4, .grammar = at(7), .session = another});
  EXPECT_EQ(expect<log_needed>(another).from, 4u) << "the terms are those of another session on the same sequence";
  ask({.round = 2, .from = 4, .grammar = text, .session = another});
  EXPECT_EQ(placed().runs.at(0).grammar, grammar::without_text({})) << "the target model has it";
}

TEST_F(cache_manager_test, penalties_get_each_token_once_and_how_often_the_output_has_it) {
  using counts = std::vector<sampling::token_count>;
  start_target();
  ask({.tail = {5, 7, 5, 5, 7, 1}, .sampling = {.repetition_penalty = 1.1F}, .prompt_count = 6});
  EXPECT_EQ(placed().runs.at(0).counts, (counts{{5, 0}, {7, 0}, {1, 0}}));
  complete();
  expect<verified>(session_at);
  ask({.round = 2, .from = 7, .sampling = {.repetition_penalty = 1.1F}, .prompt_count = 6});
  EXPECT_EQ(placed().runs.at(0).counts, (counts{{5, 0}, {7, 0}, {1, 0}, {50, 1}}));
  complete();
  expect<verified>(session_at);
  ask({.round = 3, .from = 8, .sampling = {.frequency_penalty = 1}, .prompt_count = 6});
  EXPECT_EQ(placed().runs.at(0).counts, (counts{{50, 2}})) << "the prompt counts for repetition only";
  EXPECT_TRUE(last.runs.at(0).latest.empty());
  complete();
  expect<verified>(session_at);
  ask({.round = 4, .from = 7, .tail = {8, 9}, .sampling = {.frequency_penalty = 1}, .prompt_count = 6});
  EXPECT_EQ(placed().runs.at(0).counts, (counts{{50, 1}, {8, 1}, {9, 1}}))
      << "the log was cut and continued differently";
}

TEST_F(cache_manager_test, bans_get_the_end_of_the_output_as_far_as_they_reach) {
  start_target();
  const sampling::sampling_params bans{.banned_sequences = {{1, 2, 3}, {4}}};
  ask({.tail = {5, 6, 7, 8, 9}, .sampling = bans, .prompt_count = 2});
  EXPECT_EQ(placed().runs.at(0).latest, (std::vector<token>{8, 9}));
  EXPECT_TRUE(last.runs.at(0).counts.empty());
}

TEST_F(cache_manager_test, what_penalties_need_does_not_grow_with_what_the_output_repeats) {
  start_target();
  std::vector<token> log(30);
  for (std::size_t i = 0; i < log.size(); ++i) log[i] = static_cast<token>(i % 2);
  ask({.tail = log, .sampling = {.presence_penalty = 1, .banned_sequences = {{1, 2}}}});
  EXPECT_EQ(placed().runs.at(0).counts, (std::vector<sampling::token_count>{{0, 15}, {1, 15}}));
  EXPECT_EQ(last.runs.at(0).latest, std::vector<token>{1});
}

/// A test with small batches.
class small_batches : public cache_manager_test {
 protected:
  small_batches() : cache_manager_test(scheduler_options{.batch_bytes_max = 1000}) {}
};

TEST_F(small_batches, take_as_many_sequences_as_fit_and_then_the_others) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  for (std::uint64_t s = 2; s <= 6; ++s) ask({.sequence = s, .tail = {1}});
  complete();
  expect<verified>(session_at);
  std::size_t count = 0;
  while (count < 5) {
    const std::size_t now = placed().runs.size();
    ASSERT_GT(now, 0u);
    EXPECT_LT(now, 5u);
    count += now;
    complete();
    for (std::size_t i = 0; i < now; ++i) expect<verified>(session_at);
  }
}

TEST_F(small_batches, refuse_a_sequence_that_never_fits_and_go_on_with_the_others) {
  start_target();
  ask({.sequence = 1, .tail = {1}});
  placed();
  ask({.sequence = 2, .tail = text(200), .sampling = {.frequency_penalty = 1}});
  complete();
  expect<verified>(session_at);
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 128u) << "a chunk without logits needs no history";
  complete();
  const auto no = expect<refused>(session_at);
  EXPECT_EQ(no.sequence.value, 2u);
  EXPECT_EQ(no.why.code, errc::invalid_argument);
}

class followers : public cache_manager_test {
 protected:
  followers() : cache_manager_test({}, 40) {}
  /// Sequence 1 computes its prompt; sequence 2 has the same prompt.
  void lead() {
    inject(target_at, target_ready{.context = 250, .vocabulary = 300, .rows_max = 512, .pages_count = 40});
    ask({.sequence = 1, .tail = text(100)});
    placed();
    ask({.sequence = 2, .tail = text(100)});
    EXPECT_TRUE(w.find(who)->queue().waits({2})) << "it waits for what 1 computes";
  }
};

TEST_F(followers, adopt_what_the_leader_has_computed) {
  lead();
  complete();
  EXPECT_EQ(expect<verified>(session_at).sequence.value, 1u);
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 4u);
}

TEST_F(followers, look_for_themselves_when_the_leader_leaves) {
  lead();
  inject(session_at, release_sequence{{1}});
  EXPECT_FALSE(w.find(who)->queue().waits({2}));
  complete();
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 100u);
}

TEST_F(followers, adopt_what_a_leader_that_gives_up_has_in_flight) {
  lead();
  inject(session_at, give_up_round{{1}, {1}});
  complete();
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 4u);
}

TEST_F(followers, adopt_what_is_known_before_they_follow) {
  lead();
  complete();
  expect<verified>(session_at);
  placed();
  complete();
  expect<verified>(session_at);
  auto other = text(240);
  for (std::size_t i = 70; i < other.size(); ++i) other[i] += 1;
  ask({.sequence = 3, .tail = other});
  EXPECT_EQ(placed().runs.at(0).tokens.size(), 128u);
  EXPECT_EQ(length(3), 64u + 128);
}

TEST_F(followers, do_not_follow_other_tenants_short_prefixes_or_work_that_can_wait) {
  lead();
  ask({.sequence = 3, .tail = text(100), .tenant = 2});
  auto other = text(100);
  other[40] = 299;
  ask({.sequence = 4, .tail = other});
  for (token& t : other) t += 7;
  ask({.sequence = 5, .tail = other, .prefill_only = true});
  ask({.sequence = 6, .tail = other});
  complete();
  expect<verified>(session_at);
  std::set<std::uint64_t> run;
  for (const auto& each : placed().runs) run.insert(each.sequence.value);
  EXPECT_EQ(run, (std::set<std::uint64_t>{2, 3, 4, 6})) << "5 has its turn after all others";
}

/// A long prompt and one that shares only its beginning; counts the passes until the short one's first token.
class shared_beginning : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(shared_beginning, a_short_prompt_waits_for_no_more_than_that) {
  configure_log(log_level::off, log_format::text);
  const std::uint32_t long_count = GetParam();
  static constexpr std::uint32_t pool = 1200;
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 1, wire, env};
  scheduler_options options;
  options.limits = {.running_max = 8, .waiting_max = 8, .tokens_max = 32'000};
  options.budget = {.rows_max = 256, .prompt_chunk_rows_max = 256};
  const auto who = w.add<cache_manager>(4, "cache manager", {64, 64}, [&](actor::actor_context& c) {
    return std::make_unique<cache_manager>(c, options, pool, actor::actor_ref<target_model>{target_at});
  });
  const auto inject = [&](const auto& m) {
    w.deliver(test::frame_of(who.where, session_at, m));
    while (w.run_ready()) {
    }
  };
  inject(target_ready{.context = 32'000, .vocabulary = 300, .rows_max = 512, .pages_count = pool});
  const auto prompt = [](std::uint32_t own, token mark) {
    std::vector<token> tokens(300 + own, mark);
    for (std::size_t i = 0; i < 300; ++i) tokens[i] = static_cast<token>(i % 200);
    return tokens;
  };
  const auto ask = [&](std::uint64_t sequence, std::vector<token> tokens) {
    inject(verify_run{.round = {.sequence = {sequence}, .number = {1}, .tail = std::move(tokens)},
                      .terms = sequence_terms{.facts = {{1}, 32'000}}});
  };
  ask(1, prompt(long_count, 250));
  ask(2, prompt(50, 251));
  std::uint32_t rows_of_short = 0;
  for (int passes = 1; passes <= 6; ++passes) {
    while (!wire.sent.empty() && wire.sent.front().head.id != forward_batch::id) wire.sent.pop_front();
    const auto batch = wire.take<forward_batch>();
    ASSERT_TRUE(batch);
    batch_done done{.batch = batch->batch, .elapsed_us = 10};
    bool is_answered = false;
    for (const auto& run : batch->runs) {
      run_result r{.sequence = run.sequence};
      if (run.logits_begin < run.tokens.size()) r.tokens = {50};
      if (run.sequence.value == 2) {
        rows_of_short += static_cast<std::uint32_t>(run.tokens.size());
        is_answered = !r.tokens.empty();
      }
      done.results.push_back(r);
    }
    inject(done);
    w.find(who)->check_integrity();
    if (!is_answered) continue;
    EXPECT_LE(passes, 4) << "two for the common part, one that begins while it is adopted, and its own";
    EXPECT_EQ(rows_of_short, 62u) << "288 tokens are adopted";
    configure_log(log_level::info, log_format::text);
    return;
  }
  FAIL() << "it waits for all of the long prompt";
}

INSTANTIATE_TEST_SUITE_P(lengths, shared_beginning, ::testing::Values(1'000, 10'000, 30'000));

class cache_manager_traced : public cache_manager_test {
 protected:
  cache_manager_traced() : cache_manager_traced(std::make_shared<trace::tracer>()) {}
  explicit cache_manager_traced(const std::shared_ptr<trace::tracer>& to)
      : cache_manager_test(scheduler_options{.tracer = to}), kept(to) {}

  void ask_under(trace::span_context span, std::uint64_t round, std::uint32_t from, std::vector<token> tail,
                 std::vector<token> draft = {}) {
    auto f = test::frame_of(who.where, session_at,
                            verify_run{.round = {.sequence = {1},
                                                 .number = {round},
                                                 .from = from,
                                                 .tail = std::move(tail),
                                                 .draft = std::move(draft)},
                                       .prompt_count = 3,
                                       .terms = sequence_terms{.facts = {{1}, 250}}});
    if (span) f.head.span = span;
    w.deliver(std::move(f));
    while (w.run_ready()) {
    }
    placed();
    complete();
    expect<verified>(session_at);
  }
  std::vector<trace::span> ended() { return kept->take(100, std::chrono::milliseconds(0)); }
  static std::int64_t number(const std::vector<trace::attribute>& of, std::string_view key) {
    for (const auto& [name, value] : of) {
      if (name == key) return std::get<std::int64_t>(value);
    }
    return -1;
  }
  std::shared_ptr<trace::tracer> kept;
  static constexpr trace::span_context answer{1, 2, 3}, other{1, 2, 4};
};

TEST_F(cache_manager_traced, an_answer_has_a_span_with_its_prompt_and_its_rounds) {
  start_target();
  ask_under(answer, 1, 0, {1, 2, 3});
  ask_under(answer, 2, 4, {}, {9, 8});
  ask_under(answer, 3, 7, {}, {});
  auto only_prompt = ended();
  ASSERT_EQ(only_prompt.size(), 1U);
  inject(session_at, release_sequence{{1}});
  auto whole = ended();
  ASSERT_EQ(whole.size(), 1U);
  const auto &prompt = only_prompt[0], &sequence = whole[0];
  EXPECT_EQ(sequence.parent, answer.span);
  EXPECT_EQ(sequence.where.trace_high, answer.trace_high);
  EXPECT_EQ(sequence.kind, trace::span_kind::server) << "the session is in another process";
  EXPECT_FALSE(sequence.has_failed);
  EXPECT_EQ(number(sequence.attributes, "redline.rounds"), 3);
  EXPECT_EQ(number(sequence.attributes, "redline.passes"), 3);
  EXPECT_EQ(number(sequence.attributes, "redline.drafted"), 2);
  EXPECT_EQ(number(sequence.attributes, "redline.accepted"), 2);
  ASSERT_EQ(sequence.events.size(), 2U);
  EXPECT_EQ(number(sequence.events[0].attributes, "redline.accepted"), 2);
  EXPECT_EQ(number(sequence.events[1].attributes, "redline.rows"), 1);
  EXPECT_EQ(prompt.parent, sequence.where.span);
  EXPECT_EQ(number(prompt.attributes, "redline.prompt_tokens"), 3);
  EXPECT_EQ(number(prompt.attributes, "redline.rows"), 3);
}

TEST_F(cache_manager_traced, answers_on_one_sequence_have_spans_of_their_own) {
  start_target();
  ask_under(answer, 1, 0, {1, 2, 3});
  ask_under(other, 2, 4, {}, {});
  ask_under({}, 3, 5, {}, {});
  const auto spans = ended();
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[1].parent, answer.span);
  EXPECT_EQ(spans[3].parent, other.span);
}

TEST_F(cache_manager_traced, what_is_refused_has_failed) {
  start_target();
  ask_under(answer, 1, 0, {1, 2, 3});
  ask({.round = 2, .from = 4, .prompt_count = 3});
  (void)ended();
  auto f = test::frame_of(
      who.where, session_at,
      verify_run{.round = {.sequence = {2}, .number = {1}, .tail = {1}}, .terms = sequence_terms{.facts = {{1}, 250}}});
  f.head.span = other;
  placed();
  w.deliver(std::move(f));
  complete();
  expect<verified>(session_at);
  placed();
  inject(target_at, batch_done{.batch = last.batch, .why_not = failure{errc::internal, "broken"}});
  expect<refused>(session_at);
  const auto spans = ended();
  ASSERT_EQ(spans.size(), 2U);
  for (const auto& s : spans) EXPECT_TRUE(s.has_failed) << s.name;
  wire.sent.clear();
}

}  // namespace
}  // namespace redline::actors
