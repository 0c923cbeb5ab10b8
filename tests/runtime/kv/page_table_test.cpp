#include "runtime/kv/page_table.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/support/plain_pages.hpp"
#include "tests/support/rounds.hpp"

namespace redline::kv {
namespace {

std::vector<std::uint32_t> slots_of(const page_table& table) {
  std::vector<std::uint32_t> slots;
  for (const piece& p : table.pieces()) {
    for (std::uint32_t i = 0; i < p.count; ++i) slots.push_back(p.first_slot + i);
  }
  return slots;
}

TEST(page_table, keeps_one_piece_while_pages_are_neighbours) {
  page_pool pool(4);
  page_table table;
  EXPECT_EQ(table.pages_needed(pool, 0), 0U);
  EXPECT_EQ(table.pages_needed(pool, 1), 1U);
  EXPECT_EQ(table.pages_needed(pool, 33), 2U);
  ASSERT_TRUE(table.append(pool, 40));
  EXPECT_EQ(table.pages_needed(pool, 24), 0U);
  EXPECT_EQ(table.pages_needed(pool, 25), 1U);
  ASSERT_TRUE(table.append(pool, 50));
  EXPECT_EQ(table.pieces().size(), 1U);
  EXPECT_EQ(table.held_count(), 3U);
  EXPECT_EQ(pool.free_count(), 1U);
  table.clear(pool);
}

TEST(page_table, changes_nothing_when_the_pool_has_too_few_pages) {
  page_pool pool(2);
  page_table table;
  ASSERT_TRUE(table.append(pool, 10));
  EXPECT_FALSE(table.append(pool, 55));
  EXPECT_EQ(table.token_count(), 10U);
  EXPECT_EQ(pool.free_count(), 1U);
  EXPECT_TRUE(table.append(pool, 54));
  EXPECT_EQ(table.token_count(), 64U);
}

TEST(page_table, starts_a_new_piece_where_the_next_page_is_taken) {
  page_pool pool(4);
  page_table a;
  page_table b;
  ASSERT_TRUE(a.append(pool, page_tokens));
  ASSERT_TRUE(b.append(pool, 1));
  ASSERT_TRUE(a.append(pool, 1));
  ASSERT_EQ(a.pieces().size(), 2U);
  EXPECT_EQ(a.pieces()[1], (piece{2 * page_tokens, 1, 0}));
  a.check_integrity();
}

TEST(page_table, gives_whole_pages_back_on_rollback_and_reuses_the_rest) {
  page_pool pool(4);
  page_table table;
  ASSERT_TRUE(table.append(pool, 100));
  table.truncate(pool, 64);
  EXPECT_EQ(table.held_count(), 2U);
  EXPECT_EQ(pool.free_count(), 2U);
  table.truncate(pool, 33);
  EXPECT_EQ(table.held_count(), 2U);
  EXPECT_EQ(table.pages_needed(pool, 31), 0U);
  table.truncate(pool, 200);  // there are fewer tokens, so nothing changes
  EXPECT_EQ(table.token_count(), 33U);
  table.clear(pool);
  EXPECT_EQ(pool.free_count(), 4U);
  EXPECT_TRUE(table.pieces().empty());
}

TEST(page_table, agrees_with_lists_of_slots_under_random_operations) {
  std::mt19937 random(11);
  for (int world = 0; world < 15; ++world) {
    const std::uint32_t size = 3 + random() % 30;
    page_pool pool(size);
    std::vector<page_table> tables(4);
    std::vector<std::vector<std::uint32_t>> model(4);  // slots in token order, as allocated
    for (int step = 0; step < 300; ++step) {
      const std::size_t i = random() % tables.size();
      const auto before = pool.free_count();
      if (random() % 3 != 0) {
        const std::uint32_t count = random() % 80;
        const std::uint32_t needed = tables[i].pages_needed(pool, count);
        const bool fits = needed <= before;
        ASSERT_EQ(tables[i].append(pool, count), fits);
        if (fits) {
          const auto slots = slots_of(tables[i]);
          ASSERT_EQ(slots.size(), model[i].size() + count);
          ASSERT_TRUE(std::equal(model[i].begin(), model[i].end(), slots.begin())) << "old tokens stay in place";
          model[i] = slots;
          ASSERT_EQ(pool.free_count(), before - needed);
        }
      } else {
        const std::uint32_t keep = random() % (model[i].size() + 20);
        tables[i].truncate(pool, keep);
        if (keep < model[i].size()) model[i].resize(keep);
      }
      std::set<std::uint32_t> all_slots;
      std::size_t all_pages = 0;
      for (std::size_t t = 0; t < tables.size(); ++t) {
        tables[t].check_integrity();
        ASSERT_EQ(slots_of(tables[t]), model[t]);
        ASSERT_EQ(tables[t].held_count(), (model[t].size() + page_tokens - 1) / page_tokens);
        all_pages += tables[t].held_count();
        for (const std::uint32_t slot : model[t]) ASSERT_TRUE(all_slots.insert(slot).second) << "a slot is used once";
      }
      ASSERT_EQ(pool.free_count(), size - all_pages);
      pool.check_integrity();
    }
    for (page_table& t : tables) t.clear(pool);
    ASSERT_EQ(pool.free_count(), size);
  }
}

TEST(page_table, spliced_tokens_move_by_an_offset_and_new_ones_follow_them) {
  page_pool pool(8);
  page_table table;
  ASSERT_TRUE(table.append(pool, 50));
  table.splice(pool, 4, 10, -10);
  EXPECT_EQ(table.pieces()[0], (piece{0, 4, 0}));
  EXPECT_EQ(table.pieces()[1], (piece{14, 36, -10}));
  ASSERT_TRUE(table.append(pool, 3));
  ASSERT_EQ(table.pieces().size(), 2U);
  EXPECT_EQ(table.pieces()[1], (piece{14, 39, -10}));
  EXPECT_EQ(table.exact_count(), 4U);
  // In this edit one token replaces two, and it is computed at once after the exact part.
  table.splice(pool, 2, 2, -1);
  ASSERT_TRUE(table.insert(pool, 2, 1));
  EXPECT_EQ(table.exact_count(), 3U);
  EXPECT_EQ(table.pieces().back().offset, -11);
  table.check_integrity();
  table.clear(pool);
  EXPECT_EQ(pool.free_count(), 8U);
}

TEST(page_table, evicting_one_token_at_a_time_needs_no_more_pieces_or_pages) {
  page_pool pool(8);
  page_table table;
  ASSERT_TRUE(table.append(pool, 127));
  std::size_t pieces_max = 0;
  std::uint32_t held_max = 0;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(table.append(pool, 1));
    table.splice(pool, 5, 1, -1);
    pieces_max = std::max(pieces_max, table.pieces().size());
    held_max = std::max(held_max, table.held_count());
    ASSERT_FALSE(table.is_fragmented());
  }
  EXPECT_LE(pieces_max, 7U);
  EXPECT_LE(held_max, 6U);
  EXPECT_EQ(table.pieces().back().offset, -2000);
}

TEST(page_table, never_writes_into_a_page_with_another_owner) {
  page_pool pool(4);
  page_table first;
  page_table second;
  ASSERT_TRUE(first.append(pool, 40));
  ASSERT_EQ(first.whole_pages(9), std::vector{page_id{0}});
  second.append_shared(pool, page_id{0});
  second.truncate(pool, 20);
  EXPECT_EQ(second.room(pool), 0U);
  ASSERT_TRUE(second.append(pool, 5));
  EXPECT_EQ(second.pieces()[1], (piece{2 * page_tokens, 5, 0}));
  first.truncate(pool, 10);
  EXPECT_EQ(first.room(pool), 0U);
  second.clear(pool);
  EXPECT_EQ(first.room(pool), 22U);  // the page has one owner again
  first.clear(pool);
  EXPECT_EQ(pool.free_count(), 4U);
}

// REDLINE_PAGE_TABLE_OPERATIONS=1000000 makes a long run.
TEST(page_table, agrees_with_a_list_of_tokens_under_random_operations) {
  const char* asked = std::getenv("REDLINE_PAGE_TABLE_OPERATIONS");
  const std::size_t operations = asked != nullptr ? std::strtoull(asked, nullptr, 10) : test::rounds(30'000, 3000);
  std::mt19937 random(13);
  std::size_t compactions = 0, applied = 0, shared = 0, gone = 0;
  for (std::size_t done = 0; done < operations;) {
    // In half of the rounds there are fewer window pages than pages.
    const std::uint32_t pages = 4 + random() % 40;
    const bool has_windows = random() % 2 == 0;
    test::plain_pages w(has_windows ? pool_size(pages, 3 + random() % pages, 1 + random() % 80) : pool_size(pages));
    for (int step = 0; step < 300 && done < operations; ++step, ++done) {
      const std::size_t t = random() % w.tables.size();
      page_table& table = w.tables[t];
      const std::uint32_t count = table.token_count();
      const std::uint32_t at = random() % (count + 1);
      if (has_windows && random() % 3 != 0) {
        table.hold_windows(w.pool, at);
        const window_pages& windows = *w.pool.windows();
        if (table.has_windows(w.pool, windows.first_seen(at), at)) {
          std::uint32_t seen = 0;
          for (const piece& p : table.window_pieces(w.pool, windows.first_seen(at), at)) seen += p.count;
          ASSERT_EQ(seen, at - windows.first_seen(at));
        } else {
          ++gone;
        }
      }
      switch (random() % 8) {
        case 0:
        case 1:
          ASSERT_TRUE(w.insert(t, count, random() % 50));
          break;
        case 2:
          ASSERT_TRUE(w.insert(t, at, random() % 6));
          break;
        case 3:
          w.splice(t, at, random() % (count - at + 1), -static_cast<std::int32_t>(random() % 9));
          break;
        case 4:
          w.splice(t, at, std::min<std::uint32_t>(count - at, random() % 4),
                   static_cast<std::int32_t>(random() % 9) - 4);
          break;
        case 5:
          w.truncate(t, random() % (count + 10));
          break;
        case 6:
          if (random() % 2 == 0) {
            const auto moves = table.apply_offsets(w.pool, at);
            w.apply(moves);
            applied += moves.size();
          } else {
            const auto moves = table.compact(w.pool);
            w.apply(moves);
            if (!moves.empty()) {
              ASSERT_TRUE(has_windows || !table.is_fragmented());
              ++compactions;
            }
          }
          break;
        default: {
          const std::size_t other = random() % w.tables.size();
          if (other != t && random() % 4 == 0) w.share(t, other), shared += w.tables[other].held_count();
        }
      }
      ASSERT_EQ(w.wrong(), "");
    }
    w.clear();
    ASSERT_EQ(w.wrong(), "");
  }
  EXPECT_GT(compactions, 0U);
  EXPECT_GT(applied, 0U);
  EXPECT_GT(shared, 0U);
  EXPECT_GT(gone, 0U);
}

}  // namespace
}  // namespace redline::kv
