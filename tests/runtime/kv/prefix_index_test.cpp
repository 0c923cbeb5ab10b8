#include "runtime/kv/prefix_index.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "runtime/base/token_chain.hpp"

namespace redline::kv {
namespace {

std::vector<token> text(std::size_t pages, token first) {
  std::vector<token> tokens(pages * page_tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + static_cast<token>(i / page_tokens);
  return tokens;
}
std::vector<page_id> take(page_pool& pool, std::size_t count) {
  std::vector<page_id> pages;
  for (std::size_t i = 0; i < count; ++i) pages.push_back(*pool.allocate());
  return pages;
}
void give(page_pool& pool, const std::vector<page_id>& pages) {
  for (const page_id p : pages) pool.release(p);
}

TEST(prefix_index, finds_the_longest_known_prefix_in_whole_pages) {
  page_pool pool(8);
  prefix_index index;
  const auto known = text(3, 10);
  const auto pages = take(pool, 3);
  index.add(pool, {1}, known, pages);
  give(pool, pages);
  EXPECT_EQ(pool.free_count(), 5u);
  EXPECT_EQ(index.find({1}, known), pages);
  auto longer = known;
  longer.resize(known.size() + 40, 7);
  EXPECT_EQ(index.find({1}, longer), pages);
  auto other = known;
  other[page_tokens + 3] = 99;
  EXPECT_EQ(index.find({1}, other), std::vector<page_id>{pages[0]});
  EXPECT_TRUE(index.find({1}, std::span(known).first(page_tokens - 1)).empty());
  // The second page's tokens alone are not a cached prefix.
  EXPECT_TRUE(index.find({1}, std::span(known).subspan(page_tokens)).empty());
  index.clear(pool);
  EXPECT_EQ(pool.free_count(), 8u);
}

TEST(prefix_index, tenants_never_share) {
  page_pool pool(4);
  prefix_index index;
  const auto known = text(1, 10);
  const auto pages = take(pool, 2);
  index.add(pool, {1}, known, std::span(pages).first(1));
  EXPECT_TRUE(index.find({2}, known).empty());
  index.add(pool, {2}, known, std::span(pages).last(1));
  EXPECT_EQ(index.find({1}, known), std::vector<page_id>{pages[0]});
  EXPECT_EQ(index.find({2}, known), std::vector<page_id>{pages[1]});
}

TEST(prefix_index, evicts_the_least_recently_used_leaf_first) {
  page_pool pool(4);
  prefix_index index;
  const auto a = text(2, 10);
  const auto b = text(2, 50);
  const auto pages_a = take(pool, 2);
  const auto pages_b = take(pool, 2);
  index.add(pool, {1}, a, pages_a);
  index.add(pool, {1}, b, pages_b);
  give(pool, pages_a);
  give(pool, pages_b);
  EXPECT_EQ(pool.spare_count(), 4u);
  (void)index.find({1}, a);
  EXPECT_TRUE(index.make_room(pool, 1));
  EXPECT_EQ(index.find({1}, b), std::vector<page_id>{pages_b[0]});
  EXPECT_EQ(index.find({1}, a).size(), 2u);
  pool.retain(pages_a[0]);  // a sequence uses it
  EXPECT_FALSE(index.make_room(pool, 4));
  EXPECT_EQ(pool.free_count(), 1u) << "nothing is evicted when it would not suffice";
  index.check_integrity(pool);
  index.clear(pool);
  pool.release(pages_a[0]);
}

TEST(prefix_index, evicts_a_page_together_with_used_pages_below_it) {
  page_pool pool(2);
  prefix_index index;
  const auto pages = take(pool, 2);
  index.add(pool, {1}, text(2, 10), pages);
  pool.release(pages[0]);  // the second is still in use
  EXPECT_EQ(pool.spare_count(), 1u);
  EXPECT_TRUE(index.make_room(pool, 1));
  EXPECT_EQ(index.pages_count(), 0u);
  EXPECT_EQ(pool.references(pages[1]), 1u);
  pool.release(pages[1]);
}

TEST(prefix_index, evicts_the_beginning_of_millions_of_tokens) {
  constexpr std::uint32_t count = 60'000;
  page_pool pool(count);
  prefix_index index;
  const auto known = text(count, 10);
  const auto pages = take(pool, count);
  index.add(pool, {1}, known, pages);
  pool.release(pages[0]);  // the others are in use
  ASSERT_TRUE(index.make_room(pool, 1));
  EXPECT_TRUE(index.find({1}, known).empty());
  EXPECT_EQ(pool.free_count(), 1u);
  give(pool, {pages.begin() + 1, pages.end()});
  EXPECT_EQ(pool.free_count(), count);
}

TEST(prefix_index, names_whole_blocks_as_who_asks_for_the_prompt_does) {
  page_pool pool(40);
  prefix_index index;
  const auto known = text(2 * prefix_block_tokens / page_tokens + 3, 10);
  const auto pages = take(pool, known.size() / page_tokens);
  index.add(pool, {7}, known, pages);
  std::vector<std::uint64_t> wanted;
  for (const auto chain : chain_prefixes(known)) wanted.push_back(prefix_key({7}, chain));
  ASSERT_EQ(wanted.size(), 2u);
  auto found = index.recent_blocks(100);
  std::ranges::sort(found);
  std::ranges::sort(wanted);
  EXPECT_EQ(found, wanted);
  EXPECT_NE(prefix_key({8}, chain_prefixes(known)[0]), prefix_key({7}, chain_prefixes(known)[0]));
  give(pool, pages);
  ASSERT_TRUE(index.make_room(pool, pool.free_count() + 4));
  EXPECT_EQ(index.recent_blocks(100).size(), 1u) << "the second block is incomplete now";
  index.clear(pool);
}

TEST(prefix_index, names_the_blocks_that_were_used_last_with_their_beginnings) {
  constexpr std::size_t block_pages = prefix_block_tokens / page_tokens;
  page_pool pool(4 * block_pages);
  prefix_index index;
  const auto a = text(2 * block_pages, 1000);
  const auto b = text(2 * block_pages, 5000);
  const auto pages = take(pool, 4 * block_pages);
  index.add(pool, {}, a, std::span(pages).first(2 * block_pages));
  index.add(pool, {}, b, std::span(pages).last(2 * block_pages));
  (void)index.find({}, a);
  const auto recent = index.recent_blocks(2);
  EXPECT_EQ(recent, (std::vector{prefix_key({}, chain_prefixes(a)[0]), prefix_key({}, chain_prefixes(a)[1])}));
  EXPECT_EQ(index.recent_blocks(1), std::vector{prefix_key({}, chain_prefixes(a)[0])});
  index.clear(pool);
  give(pool, pages);
}

TEST(prefix_index, stays_consistent_under_random_operations) {
  std::mt19937 random(5);
  page_pool pool(24);
  prefix_index index;
  for (int step = 0; step < 3000; ++step) {
    const tenant_id tenant{1 + random() % 2};
    std::vector<token> tokens;
    for (std::size_t i = 1 + random() % 4; i > 0; --i) {
      tokens.insert(tokens.end(), page_tokens, static_cast<token>(random() % 3));
    }
    const auto found = index.find(tenant, tokens);
    const std::size_t missing = tokens.size() / page_tokens - found.size();
    for (const page_id p : found) pool.retain(p);
    ASSERT_TRUE(index.make_room(pool, static_cast<std::uint32_t>(missing)));
    auto pages = found;
    for (const page_id p : take(pool, missing)) pages.push_back(p);
    index.add(pool, tenant, tokens, pages);
    ASSERT_EQ(index.find(tenant, tokens), pages);
    give(pool, pages);
    index.check_integrity(pool);
    pool.check_integrity();
    ASSERT_EQ(pool.free_count() + index.pages_count(), pool.pages_count());
  }
}

TEST(prefix_index, a_check_of_some_pages_goes_on_where_the_last_one_ended) {
  page_pool pool(8), other(8);
  prefix_index index;
  std::vector<token> tokens(5 * page_tokens, 3);
  std::vector<page_id> pages;
  for (int i = 0; i < 5; ++i) pages.push_back(*pool.allocate());
  index.add(pool, {1}, tokens, pages);
  prefix_index::check_progress progress;
  std::size_t looked_at = 0;
  for (int part = 0; part < 2; ++part) {
    index.check_some(pool, 5, progress);
    EXPECT_LE(progress.looked_at, 6U);
    looked_at += progress.looked_at;
  }
  EXPECT_EQ(looked_at, 9U) << "five pages and the four below another";
  EXPECT_EQ(progress.used, 0U) << "and then again from the front";
  EXPECT_DEATH(index.check_some(other, 5, progress), "known pages are kept");
}

}  // namespace
}  // namespace redline::kv
