#include "runtime/kv/cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "runtime/base/token_chain.hpp"

namespace redline::kv {
namespace {

class cache_of_four : public ::testing::Test {
 protected:
  explicit cache_of_four(pool_size size = 4) : cache_(size) {}
  ~cache_of_four() override { cache_.check_integrity(); }

  struct planned {
    std::uint64_t sequence = 1;
    std::uint32_t rows = 0;
    std::optional<std::uint32_t> first{};  // nullopt: the run is at the table's end
    std::uint32_t drafts = 0;
  };
  auto allocate(const std::vector<planned>& runs) {
    std::vector<run_range> ranges;
    for (const planned& p : runs) {
      ranges.push_back({{p.sequence}, p.first.value_or(cache_.length({p.sequence})), p.rows, p.drafts});
    }
    return cache_.allocate(ranges);
  }
  allocated given(const std::vector<planned>& runs) {
    auto got = allocate(runs);
    EXPECT_TRUE(std::holds_alternative<allocated>(got));
    auto* const all = std::get_if<allocated>(&got);
    return all == nullptr ? allocated{.runs = std::vector<run_memory>(runs.size()), .moves = {}} : std::move(*all);
  }
  [[nodiscard]] std::uint32_t pages_free() const { return cache_.free()[kind::page]; }
  std::uint32_t adopted(std::uint64_t sequence, std::uint64_t scope, const std::vector<token>& log) {
    return cache_.adopt({sequence}, {scope}, log);
  }
  static std::uint32_t count_of(const std::vector<piece>& table) {
    std::uint32_t count = 0;
    for (const piece& p : table) count += p.count;
    return count;
  }
  static std::vector<token> text(std::size_t count, token first = 0) {
    std::vector<token> tokens(count);
    for (std::size_t i = 0; i < count; ++i) tokens[i] = first + static_cast<token>(i);
    return tokens;
  }

  cache cache_;
};

TEST_F(cache_of_four, gives_all_runs_their_tables) {
  const auto m = given({{.sequence = 1, .rows = 40}, {.sequence = 2, .rows = 3}});
  EXPECT_EQ(count_of(m.runs.at(0).table), 40u);
  EXPECT_EQ(count_of(m.runs.at(1).table), 3u);
  EXPECT_EQ(pages_free(), 1u);
  EXPECT_EQ(cache_.next({1}).room, 24u);
  EXPECT_EQ(cache_.next({2}).room, 29u);
}

TEST_F(cache_of_four, drops_what_was_refused) {
  const auto first = given({{.rows = 30}}).runs[0].table;
  EXPECT_EQ(cache_.rewind({1}, 22), 22u);
  const auto table = given({{.rows = 4}}).runs[0].table;
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table[0], (piece{first[0].first_slot, 26, 0}));
  EXPECT_EQ(cache_.next({1}).room, 6u);
  EXPECT_EQ(cache_.rewind({9}, 5), 0u) << "it has nothing";
}

TEST_F(cache_of_four, fills_a_hole_in_the_middle_of_a_table) {
  given({{.rows = 20}});
  cache_.splice({1}, {.keep_count = 20, .at = 5, .removed_count = 4, .shift = -1, .policy = splice_policy::pie});
  EXPECT_EQ(count_of(given({{.rows = 3, .first = 5}}).runs[0].table), 8u) << "up to the run's end";
  const auto whole = given({{.rows = 1}}).runs[0].table;
  EXPECT_EQ(count_of(whole), 20u);
  EXPECT_EQ(whole.back().offset, -1);
}

TEST_F(cache_of_four, keys_that_are_turned_come_with_the_next_pass) {
  given({{.rows = 20}});
  cache_.splice({1}, {.keep_count = 20, .at = 5, .removed_count = 4, .shift = -4, .policy = splice_policy::eager});
  const auto m = given({{.sequence = 2, .rows = 1}});
  ASSERT_EQ(m.moves.size(), 1u);
  EXPECT_EQ(m.moves[0].count, 11u);
  EXPECT_EQ(m.moves[0].turn, -4);
  EXPECT_TRUE(given({{.sequence = 2, .rows = 1}}).moves.empty());
}

TEST_F(cache_of_four, takes_nothing_for_runs_that_do_not_all_fit) {
  given({{.sequence = 1, .rows = 100}});
  EXPECT_EQ(pages_free(), 0u);
  cache_.rewind({1}, 90);
  EXPECT_TRUE(std::holds_alternative<shortage>(allocate({{.sequence = 1, .rows = 1}, {.sequence = 2, .rows = 40}})));
  EXPECT_EQ(cache_.length({1}), 90u);
  EXPECT_EQ(cache_.length({2}), 0u);
  EXPECT_EQ(pages_free(), 1u);
  given({{.sequence = 1, .rows = 1}, {.sequence = 2, .rows = 32}});
}

TEST_F(cache_of_four, is_as_new_when_all_was_lost) {
  given({{.rows = 70}});
  cache_.offer({1}, {1}, text(70));
  cache_.splice({1}, {.keep_count = 70, .at = 5, .removed_count = 4, .shift = -4, .policy = splice_policy::eager});
  cache_.clear();
  EXPECT_EQ(pages_free(), 4u);
  EXPECT_EQ(adopted(2, 1, text(64)), 0u);
  EXPECT_TRUE(given({{.rows = 128}}).moves.empty());
}

TEST_F(cache_of_four, gives_a_new_sequence_the_pages_of_a_known_prefix_of_its_scope) {
  const auto slot = given({{.rows = 70}}).runs[0].table[0].first_slot;
  cache_.offer({1}, {1}, text(70));
  EXPECT_EQ(adopted(2, 2, text(70)), 0u) << "another scope";
  EXPECT_EQ(adopted(3, 1, text(31)), 0u);
  EXPECT_EQ(adopted(4, 1, text(70)), 64u) << "whole pages";
  EXPECT_EQ(pages_free(), 1u) << "pages count once";
  const auto table = given({{.sequence = 4, .rows = 2}}).runs[0].table;
  EXPECT_EQ(table[0].first_slot, slot);
  EXPECT_EQ(count_of(table), 66u);
}

TEST_F(cache_of_four, a_sequence_that_adopts_has_nothing_else) {
  given({{.rows = 70}});
  EXPECT_EQ(adopted(1, 1, text(40)), 0u);
  EXPECT_EQ(pages_free(), 4u);
}

TEST_F(cache_of_four, keeps_known_prefixes_until_their_pages_are_needed) {
  given({{.rows = 70}});
  cache_.offer({1}, {1}, text(70));
  cache_.release({1});
  EXPECT_EQ(pages_free(), 4u) << "for other sequences";
  EXPECT_EQ(adopted(2, 1, text(70)), 64u);
  cache_.release({2});
  given({{.sequence = 3, .rows = 100}});
  cache_.release({3});
  EXPECT_LT(adopted(4, 1, text(70)), 64u);
}

// Three of the four pages contain a few tokens each.
TEST_F(cache_of_four, moves_scattered_tokens_together_when_that_frees_pages) {
  given({{.rows = 90}});
  for (const std::uint32_t at : {60U, 30U, 2U}) {
    const std::uint32_t count = cache_.length({1});
    const std::uint32_t removed = std::min(28U, count - at);
    cache_.splice({1}, {.keep_count = count, .at = at, .removed_count = removed, .shift = 0});
  }
  const std::uint32_t before = pages_free();
  if (cache_.compact({1})) {
    EXPECT_GT(pages_free(), before);
  }
  EXPECT_FALSE(cache_.compact({1})) << "once";
  EXPECT_FALSE(cache_.compact({7}));
}

class cache_of_ten : public cache_of_four {
 protected:
  cache_of_ten() : cache_of_four(10) {}
};

TEST_F(cache_of_ten, says_which_beginnings_it_keeps_and_what_changes) {
  cache_.note_prefix_changes();
  const auto prompt = text(300);
  EXPECT_TRUE(cache_.recent_blocks(9).empty());
  given({{.rows = 300}});
  cache_.offer({1}, {9}, prompt);
  EXPECT_EQ(cache_.recent_blocks(9), std::vector{prefix_key({9}, chain_prefixes(prompt)[0])}) << "in its own scope";
  EXPECT_EQ(cache_.take_prefix_changes().size(), 9u);
  cache_.release({1});
  given({{.sequence = 3, .rows = 320}});
  EXPECT_TRUE(cache_.recent_blocks(9).empty());
  EXPECT_EQ(cache_.take_prefix_changes().size(), 9u);
}

/// Rows of some layers see 40 tokens, and there are 6 window pages.
class cache_with_windows : public cache_of_four {
 protected:
  cache_with_windows() : cache_of_four({40, 6, 40}) {}
};

TEST_F(cache_with_windows, gives_a_run_what_its_first_row_sees_and_takes_what_lies_before) {
  for (std::uint32_t kept = 0; kept < 480; kept += 32) {
    const auto m = given({{.rows = 32}});
    EXPECT_EQ(count_of(m.runs[0].table), kept + 32);
    EXPECT_EQ(count_of(m.runs[0].window_table), 32 + std::min(kept, 39U));
    for (const auto& p : m.runs[0].window_table) EXPECT_LE(p.first_slot + p.count, 6 * page_tokens);
    // The next row sees 39 earlier tokens on two pages, and one more page is in use.
    EXPECT_EQ(cache_.free()[kind::window_page], 6 - std::min(kept / 32 + 1, 3U));
    EXPECT_EQ(pages_free(), 40 - kept / 32 - 1);
  }
}

TEST_F(cache_with_windows, says_when_a_run_would_see_what_is_gone) {
  for (std::uint32_t kept = 0; kept < 320; kept += 32) given({{.rows = 32}});
  cache_.rewind({1}, 240);
  EXPECT_EQ(given({{.rows = 1}}).runs[0].window_table.size(), 1U) << "released, but not needed by others";
  cache_.rewind({1}, 100);
  const auto got = allocate({{.rows = 1}});
  ASSERT_TRUE(std::holds_alternative<kv_lost>(got));
  EXPECT_EQ(std::get<kv_lost>(got).sequences, std::vector<sequence_id>{{1}});
  cache_.release({1});
  EXPECT_EQ(count_of(given({{.rows = 100}}).runs[0].window_table), 100U) << "computed again";
}

TEST_F(cache_with_windows, shares_a_prefix_as_far_as_the_windows_before_its_end_are_there) {
  const auto tokens = text(320);
  for (std::uint32_t kept = 0; kept < 320; kept += 32) given({{.rows = 32}});
  cache_.offer({1}, {5}, tokens);
  EXPECT_EQ(adopted(2, 5, text(160)), 0U) << "computed long ago";
  EXPECT_EQ(adopted(2, 5, tokens), 320U);
  cache_.release({1});
  EXPECT_EQ(count_of(given({{.sequence = 2, .rows = 1}}).runs[0].window_table), 40U);
  // Another sequence computes the beginning again, and then that is cached as well.
  given({{.sequence = 3, .rows = 64}});
  cache_.offer({3}, {5}, text(64));
  EXPECT_EQ(adopted(4, 5, text(160)), 64U);
}

class cache_of_many_pages : public cache_of_four {
 protected:
  static constexpr std::uint32_t parts = 20, part = 4096;
  cache_of_many_pages() : cache_of_four(parts * part) {}
};

TEST_F(cache_of_many_pages, checks_a_part_of_them_at_a_time_and_all_of_them_in_turn) {
  constexpr std::uint32_t tables = 24, pages_each = 500;
  for (std::uint32_t n = 1; n <= tables; ++n) {
    given({{.sequence = n, .rows = pages_each * page_tokens}});
    cache_.offer({n}, {1}, text(pages_each * page_tokens, static_cast<token>(n)));
  }
  std::uint64_t checked = 0;
  for (std::uint32_t i = 0; i < parts; ++i) {
    const std::size_t now = cache_.check_some(part);
    EXPECT_GT(now, 0u);
    EXPECT_LE(now, 3 * part + pages_each);
    checked += now;
  }
  constexpr std::uint64_t known = tables * pages_each;
  EXPECT_GE(checked, std::uint64_t{parts} * part + known + tables * pages_each);
}

}  // namespace
}  // namespace redline::kv
