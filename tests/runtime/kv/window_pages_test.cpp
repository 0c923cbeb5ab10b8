#include "runtime/kv/window_pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "runtime/kv/page_pool.hpp"
#include "tests/support/rounds.hpp"

namespace redline::kv {
namespace {

TEST(window_pages, know_what_a_row_sees_and_what_is_held_for_it) {
  const window_pages windows(10, 5, 40);
  EXPECT_EQ(windows.first_seen(0), 0U);
  EXPECT_EQ(windows.first_seen(39), 0U);
  EXPECT_EQ(windows.first_seen(40), 1U) << "its own token is one of the 40";
  EXPECT_EQ(windows.first_held(60), 0U);
  EXPECT_EQ(windows.first_held(139), 69U) << "and a page less one token";
}

TEST(window_pages, take_the_one_that_was_let_go_longest_ago) {
  page_pool pool(pool_size(5, 2, 40));
  window_pages& windows = *pool.windows();
  const page_id first = *pool.allocate(), second = *pool.allocate();
  EXPECT_EQ(pool.available(), 0U) << "three pages, but no window page";
  EXPECT_FALSE(pool.allocate());
  windows.let_go(second);
  windows.let_go(first);
  EXPECT_EQ(pool.available(), 2U);
  EXPECT_TRUE(windows.of(first) && windows.of(second)) << "they are not needed yet";
  const page_id third = *pool.allocate();
  EXPECT_FALSE(windows.of(second));
  EXPECT_TRUE(windows.of(first));
  EXPECT_FALSE(windows.hold(second)) << "it is gone";
  EXPECT_TRUE(windows.hold(first));
  EXPECT_EQ(pool.available(), 0U);
  windows.let_go(first);
  pool.release(first);
  EXPECT_EQ(windows.free_count(), 1U) << "it went with its page";
  windows.let_go(third);
  pool.release(third);
  pool.release(second);
  pool.check_integrity();
}

TEST(window_pages, agree_with_lists_under_random_operations) {
  std::mt19937 random(3);
  std::size_t taken = 0;
  for (std::size_t round = 0; round < test::rounds(60, 10); ++round) {
    const std::uint32_t pages = 2 + random() % 20, count = 1 + random() % pages;
    window_pages windows(pages, count, 10);
    std::map<std::uint32_t, std::uint32_t> holders;  // by page, for pages with a window page
    std::deque<std::uint32_t> spare;                 // pages, least recently used first
    const auto held = [&] { return std::ranges::count_if(holders, [](const auto& h) { return h.second > 0; }); };
    for (int step = 0; step < 500; ++step) {
      const page_id page{static_cast<std::uint32_t>(random() % pages)};
      const bool has_one = holders.contains(page.value);
      switch (random() % 4) {
        case 0:
          if (has_one || held() == count) break;
          if (holders.size() == count) {
            holders.erase(spare.front());
            spare.pop_front();
            ++taken;
          }
          windows.give(page, random() % 2 == 0 ? std::nullopt : std::optional(page_id{page.value / 2}));
          holders[page.value] = 1;
          break;
        case 1:
          ASSERT_EQ(windows.hold(page), has_one);
          if (has_one && holders[page.value]++ == 0) std::erase(spare, page.value);
          break;
        case 2:
          if (!has_one || holders[page.value] == 0) break;
          windows.let_go(page);
          if (--holders[page.value] == 0) spare.push_back(page.value);
          break;
        default:
          if (has_one && holders[page.value] > 1) break;
          windows.take(page);
          holders.erase(page.value);
          std::erase(spare, page.value);
      }
      std::set<std::uint32_t> places;
      for (std::uint32_t i = 0; i < pages; ++i) {
        const auto at = windows.of(page_id{i});
        ASSERT_EQ(at.has_value(), holders.contains(i));
        if (at) {
          ASSERT_TRUE(*at < count && places.insert(*at).second) << "no two pages share one";
        }
      }
      ASSERT_EQ(windows.free_count(), count - held());
      windows.check_integrity();
    }
  }
  EXPECT_GT(taken, 0U);
}

}  // namespace
}  // namespace redline::kv
