// The cache manager's side of the life of an edit, message by message; the test plays scheduler and target model.

#include "actors/serving/cache_manager.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "actors/serving/target_model.hpp"
#include "runtime/base/token_chain.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::actors {
namespace {

constexpr auto scheduler_at = actor::make_address(2, 1, 4);
constexpr auto target_at = actor::make_address(2, 3, 5);
constexpr std::uint32_t pages_count = 4;

class cache_manager_test : public ::testing::Test {
 protected:
  explicit cache_manager_test(kv::pool_size size = pages_count) {
    who = w.add<cache_manager>(3, "cache manager", {64, 64}, [size](actor::actor_context& c) {
      return std::make_unique<cache_manager>(c, size, actor::actor_ref<target_model>{target_at});
    });
  }
  ~cache_manager_test() override { w.find(who)->check_integrity(); }
  template<actor::message M>
  void inject(const M& m) {
    w.deliver(test::frame_of(who.where, scheduler_at, m));
    while (w.run_ready()) {
    }
  }
  template<actor::message M>
  M expect(actor::address to) {
    auto m = wire.take<M>();
    EXPECT_TRUE(m) << "expected " << M::name;
    EXPECT_EQ(wire.last_to, to);
    return m.value_or(M{});
  }

  struct planned {
    std::uint64_t sequence = 1;
    std::uint32_t keep_count = 0;
    std::uint32_t rows = 0;
    std::vector<table_splice> splices{};
    std::optional<std::uint32_t> first{};  // else the run goes to the table's end
  };
  void place(const std::vector<planned>& plan) {
    place_batch m{.epoch = epoch, .batch = ++batch};
    for (const planned& p : plan) {
      m.changes.push_back({{p.sequence}, p.splices, p.keep_count});
      if (p.rows == 0) continue;
      m.runs.push_back({.sequence = {p.sequence},
                        .tokens = std::vector<token>(p.rows, 7),
                        .first_position = static_cast<position>(p.first.value_or(p.keep_count))});
    }
    inject(m);
  }
  forward_batch passed_on() {
    auto m = expect<forward_batch>(target_at);
    EXPECT_EQ(m.batch, batch);
    EXPECT_TRUE(wire.sent.empty());
    return m;
  }
  batch_held held() {
    auto m = expect<batch_held>(scheduler_at);
    EXPECT_EQ(m.batch, batch);
    EXPECT_TRUE(wire.sent.empty());
    return m;
  }
  prefix_adopted adopted(std::uint64_t sequence, std::uint64_t tenant, const std::vector<token>& tokens) {
    inject(adopt_prefix{epoch, {sequence}, 77, {tenant}, tokens});
    auto m = expect<prefix_adopted>(scheduler_at);
    EXPECT_EQ(m.sequence.value, sequence);
    EXPECT_EQ(m.question, 77u);
    return m;
  }
  static std::uint32_t count_of(const std::vector<kv::piece>& table) {
    std::uint32_t count = 0;
    for (const auto& piece : table) count += piece.count;
    return count;
  }
  static std::vector<token> text(std::size_t count, token first = 0) {
    std::vector<token> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<token>(i);
    return tokens;
  }

  std::uint64_t epoch = 9;
  std::uint64_t batch = 100;
  test::virtual_environment env;
  test::hand_link wire;
  actor::worker w{2, 1, wire, env};
  actor::actor_ref<cache_manager> who;
};

TEST_F(cache_manager_test, adds_the_tables_and_passes_the_batch_on) {
  place({{.sequence = 1, .rows = 40}, {.sequence = 2, .rows = 3}});
  const auto m = passed_on();
  ASSERT_EQ(m.runs.size(), 2u);
  EXPECT_EQ(m.runs[0].sequence.value, 1u);
  EXPECT_EQ(m.runs[0].tokens.size(), 40u);
  EXPECT_EQ(count_of(m.runs[0].table), 40u);
  EXPECT_EQ(count_of(m.runs[1].table), 3u);
  EXPECT_EQ(m.pages.free_count, 1u);
  ASSERT_EQ(m.pages.rooms.size(), 2u);
  EXPECT_EQ(m.pages.rooms[0].tokens_count, 24u);
  EXPECT_EQ(m.pages.rooms[1].tokens_count, 29u);
}

TEST_F(cache_manager_test, passes_a_batch_on_once_however_often_it_comes) {
  place({{.rows = 3}});
  passed_on();
  --batch;
  place({{.rows = 3}});
  EXPECT_TRUE(wire.sent.empty());
}

TEST_F(cache_manager_test, drops_what_was_refused_before_it_adds_the_next_run) {
  place({{.rows = 30}});
  const auto first = passed_on().runs[0].table;
  place({{.keep_count = 22, .rows = 4}});
  const auto m = passed_on();
  ASSERT_EQ(m.runs[0].table.size(), 1u);
  EXPECT_EQ(m.runs[0].table[0], (kv::piece{first[0].first_slot, 26, 0}));
  EXPECT_EQ(m.pages.rooms[0].tokens_count, 6u);
}

TEST_F(cache_manager_test, fills_a_hole_in_the_middle_of_a_table) {
  place({{.rows = 20}});
  passed_on();
  const table_splice splice{
      .keep_count = 20, .at = 5, .removed_count = 4, .shift = -1, .policy = kv::splice_policy::pie};
  place({{.keep_count = 16, .rows = 3, .splices = {splice}, .first = 5}});
  const auto m = passed_on();
  EXPECT_EQ(count_of(m.runs[0].table), 8u) << "up to the run's end";
  place({{.keep_count = 19, .rows = 1}});
  const auto whole = passed_on().runs[0].table;
  EXPECT_EQ(count_of(whole), 20u);
  EXPECT_EQ(whole.back().offset, -1);
}

TEST_F(cache_manager_test, keys_that_are_turned_travel_with_the_next_batch_that_is_passed_on) {
  place({{.rows = 20}});
  passed_on();
  const table_splice splice{
      .keep_count = 20, .at = 5, .removed_count = 4, .shift = -4, .policy = kv::splice_policy::eager};
  place({{.keep_count = 16, .splices = {splice}}});
  held();
  place({{.sequence = 2, .rows = 1}});
  const auto m = passed_on();
  ASSERT_EQ(m.moves.size(), 1u);
  EXPECT_EQ(m.moves[0].count, 11u);
  EXPECT_EQ(m.moves[0].turn, -4);
  place({{.sequence = 2, .keep_count = 1, .rows = 1}});
  EXPECT_TRUE(passed_on().moves.empty());
}

TEST_F(cache_manager_test, holds_what_does_not_fit_and_says_what_there_is) {
  place({{.sequence = 1, .rows = 100}});
  EXPECT_EQ(passed_on().pages.free_count, 0u);
  place({{.sequence = 1, .keep_count = 90, .rows = 1}, {.sequence = 2, .rows = 40}});
  const auto m = held();
  EXPECT_FALSE(m.tables_lost);
  EXPECT_EQ(m.pages.free_count, 1u) << "what was dropped is given back all the same";
  EXPECT_EQ(m.pages.rooms.at(0).tokens_count, 6u);
  EXPECT_EQ(m.pages.rooms.at(1).tokens_count, 0u);
  place({{.sequence = 1, .keep_count = 90, .rows = 1}, {.sequence = 2, .rows = 32}});
  EXPECT_EQ(passed_on().runs.size(), 2u);
}

TEST_F(cache_manager_test, counts_when_it_gets_a_batch_without_runs) {
  place({{.rows = 64}});
  passed_on();
  inject(release_pages{epoch, {1}});
  place({});
  EXPECT_EQ(held().pages.free_count, pages_count);
}

TEST_F(cache_manager_test, says_so_when_it_has_not_the_tables_that_a_batch_goes_on_with) {
  place({{.sequence = 1, .keep_count = 10, .rows = 1}});
  EXPECT_TRUE(held().tables_lost);
  place({{.sequence = 2, .keep_count = 10}});
  EXPECT_TRUE(held().tables_lost);
  place({{.sequence = 3, .rows = 2}});
  passed_on();
  const table_splice outside{.keep_count = 2, .at = 1, .removed_count = 2};
  place({{.sequence = 3, .splices = {outside}}});
  EXPECT_TRUE(held().tables_lost);
  place({{.sequence = 4, .rows = 1, .first = 3}});
  EXPECT_TRUE(held().tables_lost) << "a run must join on";
}

TEST_F(cache_manager_test, a_new_epoch_begins_with_empty_pages) {
  place({{.rows = 70}});
  passed_on();
  inject(offer_prefix{epoch, {1}, {1}, text(70)});
  ++epoch;
  EXPECT_EQ(adopted(2, 1, text(64)).count, 0u);
  place({{.sequence = 1, .rows = 128}});
  EXPECT_EQ(passed_on().pages.free_count, 0u);
  ++epoch;
  inject(release_pages{epoch, {5}});
  EXPECT_EQ(w.find(who)->free_count(), pages_count);
}

TEST_F(cache_manager_test, gives_a_new_sequence_the_pages_of_a_known_prefix_of_its_tenant) {
  place({{.rows = 70}});
  const auto slot = passed_on().runs[0].table[0].first_slot;
  inject(offer_prefix{epoch, {1}, {1}, text(70)});
  EXPECT_EQ(adopted(2, 2, text(70)).count, 0u) << "another tenant";
  EXPECT_EQ(adopted(3, 1, text(31)).count, 0u);
  const auto m = adopted(4, 1, text(70));
  EXPECT_EQ(m.count, 64u) << "whole pages";
  EXPECT_EQ(m.free_count, 1u) << "pages count once";
  place({{.sequence = 4, .keep_count = 64, .rows = 2}});
  const auto table = passed_on().runs[0].table;
  EXPECT_EQ(table[0].first_slot, slot);
  EXPECT_EQ(count_of(table), 66u);
}

TEST_F(cache_manager_test, a_sequence_that_asks_for_a_prefix_has_nothing_else) {
  place({{.rows = 70}});
  passed_on();
  EXPECT_EQ(adopted(1, 1, text(40)).count, 0u);
  EXPECT_EQ(w.find(who)->free_count(), pages_count);
}

TEST_F(cache_manager_test, keeps_known_prefixes_until_their_pages_are_needed) {
  place({{.rows = 70}});
  passed_on();
  inject(offer_prefix{epoch, {1}, {1}, text(70)});
  inject(release_pages{epoch, {1}});
  EXPECT_EQ(w.find(who)->free_count(), pages_count) << "for other sequences";
  EXPECT_EQ(adopted(2, 1, text(70)).count, 64u);
  inject(release_pages{epoch, {2}});
  place({{.sequence = 3, .rows = 100}});
  passed_on();
  inject(release_pages{epoch, {3}});
  EXPECT_LT(adopted(4, 1, text(70)).count, 64u);
}

class a_larger_cache_manager : public cache_manager_test {
 protected:
  a_larger_cache_manager() : cache_manager_test(10) {}
};

TEST_F(a_larger_cache_manager, says_which_beginnings_it_keeps_and_then_what_changes) {
  const auto prompt = text(300);
  const auto ask = [&](std::uint64_t revision) {
    inject(read_kept{revision});
    return expect<kept_prefixes>(scheduler_at);
  };
  const auto nothing = ask(0);
  EXPECT_TRUE(nothing.is_all);
  EXPECT_TRUE(nothing.added.empty());
  place({{.rows = 300}});
  passed_on();
  inject(offer_prefix{epoch, {1}, {9}, prompt});
  EXPECT_TRUE(ask(nothing.revision).added.empty()) << "it looks once a second";
  env.advance(microseconds{1'000'000});
  const auto kept = ask(nothing.revision);
  EXPECT_FALSE(kept.is_all);
  EXPECT_EQ(kept.added, std::vector{prefix_key({9}, chain_prefixes(prompt)[0])}) << "of its own tenant";
  inject(release_pages{epoch, {1}});
  place({{.sequence = 3, .rows = 320}});
  passed_on();
  env.advance(microseconds{1'000'000});
  EXPECT_EQ(ask(kept.revision).dropped, kept.added);
}

TEST_F(cache_manager_test, tells_the_scheduler_of_a_batch_that_did_not_reach_the_target_model) {
  place({{.rows = 3}});
  passed_on();
  w.deliver(test::frame_of(who.where, {},
                           actor::undeliverable{target_at, forward_batch::id, {errc::unreachable, "gone"}, batch}));
  while (w.run_ready()) {
  }
  const auto lost = expect<batch_lost>(scheduler_at);
  EXPECT_EQ(lost.batch, batch);
  EXPECT_EQ(lost.why.code, errc::unreachable);
}

/// Rows of some layers see 40 tokens, which have 6 window pages.
class a_cache_manager_with_windows : public cache_manager_test {
 protected:
  a_cache_manager_with_windows() : cache_manager_test({40, 6, 40}) {}
};

TEST_F(a_cache_manager_with_windows, gives_a_run_what_its_first_row_sees_and_takes_what_lies_behind) {
  std::uint32_t kept = 0;
  for (; kept < 480; kept += 32) {
    place({{.keep_count = kept, .rows = 32}});
    const auto m = passed_on();
    EXPECT_EQ(count_of(m.runs[0].table), kept + 32);
    EXPECT_EQ(count_of(m.runs[0].window_table), 32 + std::min(kept, 39U));
    for (const auto& piece : m.runs[0].window_table) EXPECT_LE(piece.first_slot + piece.count, 6 * kv::page_tokens);
    // The next row sees 39 tokens before it, of two pages, and a page more is held.
    EXPECT_EQ(m.pages.window_free_count, 6 - std::min(kept / 32 + 1, 3U));
    EXPECT_EQ(m.pages.free_count, 40 - kept / 32 - 1);
  }
}

TEST_F(a_cache_manager_with_windows, says_when_a_run_would_see_what_is_gone) {
  for (std::uint32_t kept = 0; kept < 320; kept += 32) {
    place({{.keep_count = kept, .rows = 32}});
    passed_on();
  }
  place({{.keep_count = 240, .rows = 1}});
  EXPECT_EQ(passed_on().runs[0].window_table.size(), 1U) << "let go, but nobody needed it";
  place({{.keep_count = 100, .rows = 1}});
  const auto m = held();
  EXPECT_FALSE(m.tables_lost);
  EXPECT_EQ(m.windows_lost, std::vector<sequence_id>{{1}});
  inject(release_pages{epoch, {1}});
  place({{.rows = 100}});
  EXPECT_EQ(count_of(passed_on().runs[0].window_table), 100U) << "computed again";
}

TEST_F(a_cache_manager_with_windows, shares_a_prefix_as_far_as_the_windows_before_its_end_are_there) {
  const auto tokens = text(320);
  for (std::uint32_t kept = 0; kept < 320; kept += 32) {
    place({{.keep_count = kept, .rows = 32}});
    passed_on();
  }
  inject(offer_prefix{epoch, {1}, {5}, tokens});
  EXPECT_EQ(adopted(2, 5, text(160)).count, 0U) << "computed long ago";
  EXPECT_EQ(adopted(2, 5, tokens).count, 320U);
  inject(release_pages{epoch, {1}});
  place({{.sequence = 2, .keep_count = 320, .rows = 1}});
  EXPECT_EQ(count_of(passed_on().runs[0].window_table), 40U);
  // Another one computes the beginning again; then that is known, too.
  place({{.sequence = 3, .rows = 64}});
  passed_on();
  inject(offer_prefix{epoch, {3}, {5}, text(64)});
  EXPECT_EQ(adopted(4, 5, text(160)).count, 64U);
}

class a_cache_manager_of_many_pages : public cache_manager_test {
 protected:
  static constexpr std::uint32_t parts = 20;
  a_cache_manager_of_many_pages() : cache_manager_test(parts * cache_manager::check_pages_max) {}
};

TEST_F(a_cache_manager_of_many_pages, checks_a_part_of_them_at_a_time_and_all_of_them_in_turn) {
  constexpr std::uint32_t tables = 24, pages = 500;
  for (std::uint32_t n = 1; n <= tables; ++n) {
    place({{.sequence = n, .rows = pages * kv::page_tokens}});
    passed_on();
    inject(offer_prefix{epoch, {n}, {1}, text(pages * kv::page_tokens, static_cast<token>(n))});
  }
  const auto count = [this] { return w.find(who)->checked_count(); };
  std::uint64_t before = count();
  for (std::uint32_t part = 0; part < parts; ++part) {
    env.advance_to(env.now() + microseconds{10'000'000 / parts + 1});
    w.run_idle();
    w.run_idle();
    EXPECT_GT(count(), before);
    EXPECT_LE(count() - before, 3 * cache_manager::check_pages_max + pages) << "and no more for being asked twice";
    before = count();
  }
  constexpr std::uint64_t pool = std::uint64_t{parts} * cache_manager::check_pages_max, known = tables * pages;
  EXPECT_GE(count(), pool + known + tables * pages);
}

}  // namespace
}  // namespace redline::actors
