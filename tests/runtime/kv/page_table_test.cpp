#include "runtime/kv/page_table.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>

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
  EXPECT_EQ(table.pages_needed(0), 0U);
  EXPECT_EQ(table.pages_needed(1), 1U);
  EXPECT_EQ(table.pages_needed(33), 2U);
  ASSERT_TRUE(table.append(pool, 40));
  EXPECT_EQ(table.pages_needed(24), 0U);
  EXPECT_EQ(table.pages_needed(25), 1U);
  ASSERT_TRUE(table.append(pool, 50));
  EXPECT_EQ(table.pieces().size(), 1U);
  EXPECT_EQ(table.pages().size(), 3U);
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
  EXPECT_EQ(table.pages().size(), 2U);
  EXPECT_EQ(pool.free_count(), 2U);
  table.truncate(pool, 33);
  EXPECT_EQ(table.pages().size(), 2U);
  EXPECT_EQ(table.pages_needed(31), 0U);
  table.truncate(pool, 200);  // more than there is: nothing to do
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
    std::vector<std::vector<std::uint32_t>> model(4);  // slots in token order, as handed out
    for (int step = 0; step < 300; ++step) {
      const std::size_t i = random() % tables.size();
      const auto before = pool.free_count();
      if (random() % 3 != 0) {
        const std::uint32_t count = random() % 80;
        const std::uint32_t needed = tables[i].pages_needed(count);
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
        ASSERT_EQ(tables[t].pages().size(), (model[t].size() + page_tokens - 1) / page_tokens);
        all_pages += tables[t].pages().size();
        for (const std::uint32_t slot : model[t]) ASSERT_TRUE(all_slots.insert(slot).second) << "a slot is used once";
      }
      ASSERT_EQ(pool.free_count(), size - all_pages);
      pool.check_integrity();
    }
    for (page_table& t : tables) t.clear(pool);
    ASSERT_EQ(pool.free_count(), size);
  }
}

}  // namespace
}  // namespace redline::kv
