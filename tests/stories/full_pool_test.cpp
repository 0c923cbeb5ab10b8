// The real cache manager with a target model that answers at random and a pool that is always nearly full. No page is
// written by two sequences, and KV is lost only to preemption.

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "actors/serving/cache_manager.hpp"
#include "actors/serving/target_model.hpp"
#include "runtime/base/log.hpp"
#include "tests/support/hand_link.hpp"
#include "tests/support/rounds.hpp"

namespace redline::actors {
namespace {

constexpr auto target_at = actor::make_address(2, 3, 5);
constexpr auto session_at = actor::make_address(1, 1, 40);
constexpr std::uint32_t tokens_max = 400;

/// What a session knows of its log.
struct client {
  std::uint64_t round = 0;
  std::vector<token> log;
  bool open = false;
};

struct world {
  explicit world(std::uint64_t seed, kv::pool_size of) : chance(seed), size(of), pages_count(of.pages) {
    scheduler_options options;
    options.limits = {.running_max = 6, .waiting_max = 16, .tokens_max = tokens_max};
    options.budget = {.rows_max = 96, .prompt_chunk_rows_max = 64};
    options.policy = "fair_share";
    who = w.add<cache_manager>(4, "cache manager", {256, 256}, [this, options](actor::actor_context& c) {
      return std::make_unique<cache_manager>(c, options, size, actor::actor_ref<target_model>{target_at});
    });
    inject(target_at, target_ready{.context = tokens_max,
                                   .rows_max = 512,
                                   .pages_count = pages_count,
                                   .window_pages_count = size.window_pages});
    settle();
  }

  template<actor::message M>
  void inject(actor::address from, const M& m) {
    w.deliver(test::frame_of(who.where, from, m));
    while (w.run_ready()) {
    }
  }
  /// Delivers the messages between the actors and keeps the target's batch.
  void settle() {
    while (!wire.sent.empty()) {
      const auto frame = std::move(wire.sent.front());
      wire.sent.pop_front();
      const auto id = frame.head.id;
      if (id == forward_batch::id) {
        batch = *actor::decode<forward_batch>(frame.body);
        check_slots();
        compute();
      } else if (id == verified::id) {
        note(*actor::decode<verified>(frame.body));
      } else if (id == log_needed::id || id == refused::id) {
        ADD_FAILURE() << "nothing is refused or forgotten: " << id.value;
      }
    }
    w.find(who)->check_integrity();
  }
  /// No slot is written by two sequences.
  void check_slots() const {
    std::map<std::uint32_t, std::uint64_t> written;
    for (const auto& run : batch->runs) {
      std::uint32_t index = 0;
      for (const auto& piece : run.memory.table) {
        for (std::uint32_t i = 0; i < piece.count; ++i, ++index) {
          if (index < static_cast<std::uint32_t>(run.first_position)) continue;
          EXPECT_TRUE(written.emplace(piece.first_slot + i, run.sequence.value).second) << "written twice";
          EXPECT_LT(piece.first_slot + i, pages_count * kv::page_tokens);
        }
      }
    }
  }
  /// Acts as a model: each row leaves a value in its slots, and what it finds in the window must be what the sequence's
  /// tokens left in the pages.
  void compute() {
    for (const auto& m : batch->moves) {
      for (std::uint32_t i = 0; i < m.count; ++i) {
        stored[m.to_slot + i] = stored[m.from_slot + i];
        if (m.window_from != m.nowhere && m.window_to != m.nowhere)
          window_stored[m.window_to + i] = window_stored[m.window_from + i];
      }
    }
    for (const auto& run : batch->runs) {
      std::vector<std::uint32_t> slots, window_slots;
      for (const auto& piece : run.memory.table) {
        for (std::uint32_t i = 0; i < piece.count; ++i) slots.push_back(piece.first_slot + i);
      }
      for (const auto& piece : run.memory.window_table) {
        for (std::uint32_t i = 0; i < piece.count; ++i) window_slots.push_back(piece.first_slot + i);
      }
      const auto first = static_cast<std::size_t>(run.first_position);
      const std::size_t before = size.window == 0 ? 0 : std::min<std::size_t>(first, size.window - 1);
      EXPECT_EQ(window_slots.size(), size.window == 0 ? 0 : run.tokens.size() + before);
      for (std::size_t i = 0; i < window_slots.size(); ++i) {
        EXPECT_LT(window_slots[i], size.window_pages * kv::page_tokens);
        const std::uint32_t slot = slots[first - before + i];
        if (i < before) {
          EXPECT_EQ(window_stored[window_slots[i]], stored[slot]) << "another token's window page";
        } else {
          window_stored[window_slots[i]] = stored[slot] = ++last_stored;
        }
      }
    }
  }
  void answer_batch() {
    batch_done done{.batch = batch->batch, .elapsed_us = 100};
    for (const auto& run : batch->runs) {
      run_result r{.sequence = run.sequence};
      if (run.logits_begin < run.tokens.size()) {
        r.accepted_count = static_cast<std::uint32_t>(chance() % (run.draft_count + 1));
        const auto first = run.tokens.end() - run.draft_count;
        r.tokens.assign(first, first + r.accepted_count);
        r.tokens.push_back(static_cast<token>(chance() % 3));
      }
      done.results.push_back(std::move(r));
    }
    batch.reset();
    inject(target_at, done);
    settle();
  }
  void note(const verified& v) {
    client& c = clients.at(v.sequence.value);
    EXPECT_TRUE(c.open);
    c.open = false;
    c.log.insert(c.log.end(), v.tokens.begin(), v.tokens.end());
    ++answered;
  }
  void ask(std::uint64_t sequence) {
    auto [at, is_new] = clients.try_emplace(sequence);
    client& c = at->second;
    if (c.open) return;
    scheduler::round r{.sequence = {sequence}, .number = {++c.round}};
    if (is_new) {
      // A common beginning, then one of a few continuations, then the sequence's own tokens.
      c.log.assign(40 + 32 * (chance() % 3), 1);
      c.log.insert(c.log.end(), 32 * (chance() % 3), static_cast<token>(2 + chance() % 2));
      c.log.insert(c.log.end(), chance() % 60, static_cast<token>(10 + sequence));
      r.tail = c.log;
    } else {
      r.from = static_cast<std::uint32_t>(c.log.size());
      if (chance() % 6 == 0) {
        const auto at_token = static_cast<std::uint32_t>(chance() % (c.log.size() - 2));
        const auto removed =
            static_cast<std::uint32_t>(1 + chance() % std::min<std::size_t>(20, c.log.size() - at_token - 1));
        const auto policy = chance() % 2 == 0 ? kv::splice_policy::pie : kv::splice_policy::eager;
        r.splices.push_back({.at = at_token, .removed_count = removed, .tokens = {7}, .policy = policy});
        c.log.erase(c.log.begin() + at_token, c.log.begin() + at_token + removed);
        c.log.insert(c.log.begin() + at_token, 7);
        r.from = static_cast<std::uint32_t>(c.log.size());
      }
    }
    r.draft.assign(chance() % 12, 5);
    c.open = true;
    const auto count = r.from + static_cast<std::uint32_t>(r.tail.size());
    inject(
        session_at,
        verify_run{.round = std::move(r), .prompt_count = count, .terms = sequence_terms{.facts = {{1}, tokens_max}}});
    settle();
  }
  void release(std::uint64_t sequence) {
    if (clients.erase(sequence) == 0) return;
    inject(session_at, release_sequence{{sequence}});
    settle();
  }

  std::mt19937_64 chance;
  kv::pool_size size;
  std::uint32_t pages_count;
  std::map<std::uint32_t, std::uint64_t> stored, window_stored;  // by slot
  std::uint64_t last_stored = 0;
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 1, wire, env};
  actor::actor_ref<cache_manager> who;
  std::optional<forward_batch> batch;
  std::map<std::uint64_t, client> clients;
  int answered = 0;
};

class full_pool : public ::testing::TestWithParam<kv::pool_size> {};

TEST_P(full_pool, preempts_or_waits_and_never_loses_all_kv) {
  std::uint64_t preempted = 0;
  configure_log(log_level::off, log_format::text);
  for (std::uint64_t seed = 1; seed <= test::rounds(12, 2); ++seed) {
    world all(seed, GetParam());
    std::uint64_t last = 0;
    for (int i = 0; i < 1500; ++i) {
      const std::uint64_t s = last < 6 || all.chance() % 12 == 0 ? ++last : last - all.chance() % 6;
      if (all.clients.contains(s) && all.clients.at(s).log.size() + 60 > tokens_max) {
        all.release(s);
        continue;
      }
      if (all.chance() % 3 == 0 && (all.clients.contains(s) || all.clients.size() < 10)) all.ask(s);
      if (all.clients.size() >= 10) all.release(all.clients.begin()->first);
      if (all.batch && all.chance() % 2 == 0) all.answer_batch();
      if (all.chance() % 4 == 0) {
        all.env.advance(microseconds{100'000});
        (void)all.w.fire_timers();
        while (all.w.run_ready()) {
        }
        all.settle();
      }
      if (HasFailure()) FAIL() << "seed " << seed << ", operation " << i;
    }
    // Every round is eventually answered.
    for (int i = 0; i < 2000; ++i) {
      if (all.batch) {
        all.answer_batch();
      } else {
        all.env.advance(microseconds{100'000});
        (void)all.w.fire_timers();
        while (all.w.run_ready()) {
        }
        all.settle();
      }
    }
    for (const auto& [sequence, c] : all.clients) EXPECT_FALSE(c.open) << "seed " << seed << ", " << sequence;
    EXPECT_GT(all.answered, 100);
    all.inject(session_at, report_status{});
    preempted += all.wire.take<scheduler_report>().value().preempted_total;
  }
  if (GetParam().window_pages == 8) {
    EXPECT_GT(preempted, 0U) << "some continued from a position whose window was gone";
  }
  configure_log(log_level::info, log_format::text);
}

INSTANTIATE_TEST_SUITE_P(pools, full_pool,
                         ::testing::Values(kv::pool_size(13), kv::pool_size(20), kv::pool_size(40),
                                           kv::pool_size(40, 12, 40), kv::pool_size(60, 8, 70),
                                           kv::pool_size(20, 20, 10)));

}  // namespace
}  // namespace redline::actors
