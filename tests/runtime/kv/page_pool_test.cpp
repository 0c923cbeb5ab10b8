#include "runtime/kv/page_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace redline::kv {
namespace {

TEST(page_pool, hands_every_page_out_once_and_then_refuses) {
  page_pool pool(5);
  std::map<std::uint32_t, int> seen;
  for (int i = 0; i < 5; ++i) ++seen[pool.allocate().value().value];
  EXPECT_EQ(seen.size(), 5U);
  EXPECT_FALSE(pool.allocate().has_value());
  EXPECT_EQ(pool.free_count(), 0U);
}

TEST(page_pool, prefers_the_page_after_the_neighbour) {
  page_pool pool(8);
  const page_id first = *pool.allocate();
  const page_id elsewhere = *pool.allocate(page_id{4});
  EXPECT_EQ(elsewhere, page_id{5});
  EXPECT_EQ(pool.allocate(first), page_id{first.value + 1});
  EXPECT_NE(pool.allocate(page_id{7}), std::nullopt);  // the last page has no successor
}

TEST(page_pool, keeps_a_page_until_its_last_reference_goes) {
  page_pool pool(1);
  const page_id page = *pool.allocate();
  pool.retain(page);
  pool.release(page);
  EXPECT_EQ(pool.free_count(), 0U);
  EXPECT_EQ(pool.references(page), 1U);
  pool.release(page);
  EXPECT_EQ(pool.free_count(), 1U);
}

TEST(page_pool, counts_pages_that_only_the_prefix_cache_holds) {
  page_pool pool(3);
  const page_id page = *pool.allocate();
  pool.keep(page);
  EXPECT_TRUE(pool.is_kept(page));
  EXPECT_EQ(pool.spare_count(), 0U);
  pool.release(page);
  EXPECT_EQ(pool.spare_count(), 1U);
  EXPECT_EQ(pool.free_count(), 2U);
  pool.retain(page);
  EXPECT_EQ(pool.spare_count(), 0U);
  pool.release(page);
  pool.check_integrity();
  pool.give_up(page);
  EXPECT_EQ(pool.kept_count(), 0U);
  EXPECT_EQ(pool.spare_count(), 0U);
  EXPECT_EQ(pool.free_count(), 3U);
}

TEST(page_pool, an_empty_pool_allocates_nothing) { EXPECT_FALSE(page_pool(0).allocate().has_value()); }

TEST(page_pool_death, ends_the_process_when_a_free_page_is_released) {
  page_pool pool(2);
  EXPECT_DEATH(pool.release(page_id{1}), "released once per reference");
  EXPECT_DEATH(pool.retain(page_id{2}), "only a held page");
}

TEST(page_pool, agrees_with_a_map_of_counts_under_random_operations) {
  std::mt19937 random(7);
  for (int world = 0; world < 20; ++world) {
    const std::uint32_t size = 1 + random() % 40;
    page_pool pool(size);
    std::map<std::uint32_t, std::uint32_t> model;
    for (int step = 0; step < 500; ++step) {
      const page_id some{static_cast<std::uint32_t>(random() % size)};
      const bool held = model.contains(some.value);
      switch (random() % 3) {
        case 0: {
          const bool near = random() % 2 == 0;
          const auto page = pool.allocate(near ? std::optional(some) : std::nullopt);
          ASSERT_EQ(page.has_value(), model.size() < size);
          if (!page) break;
          ASSERT_FALSE(model.contains(page->value));
          if (near && some.value + 1 < size && !model.contains(some.value + 1)) {
            ASSERT_EQ(page->value, some.value + 1);
          }
          model[page->value] = 1;
          break;
        }
        case 1:
          if (held) pool.retain(some), ++model[some.value];
          break;
        default:
          if (held) {
            pool.release(some);
            if (--model[some.value] == 0) model.erase(some.value);
          }
      }
      pool.check_integrity();
      ASSERT_EQ(pool.free_count(), size - model.size());
      ASSERT_EQ(pool.references(some), model.contains(some.value) ? model[some.value] : 0);
    }
  }
}

TEST(page_pool, counts_all_references) {
  page_pool pool(4);
  const auto page = *pool.allocate();
  pool.retain(page);
  pool.keep(page);
  EXPECT_EQ(pool.references_total(), 3U);
  pool.give_up(page);
  pool.release(page);
  EXPECT_EQ(pool.references_total(), 1U);
  pool.release(page);
  EXPECT_EQ(pool.references_total(), 0U);
  pool.check_integrity();
}

}  // namespace
}  // namespace redline::kv
