#include "actors/editing/kv_estimate.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace redline::actors {
namespace {

using tokens = std::vector<token>;

/// 0 to 99.
tokens hundred() {
  tokens out(100);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

tokens edited(tokens log, std::size_t at, std::size_t removed, const tokens& with) {
  const auto first = log.begin() + static_cast<std::ptrdiff_t>(at);
  log.insert(log.erase(first, first + static_cast<std::ptrdiff_t>(removed)), with.begin(), with.end());
  return log;
}

kv_estimate cache_with(tokens log, kv::splice_policy policy = kv::splice_policy::pie) {
  kv_estimate cache(policy);
  EXPECT_TRUE(cache.follow(std::move(log)).empty());
  EXPECT_TRUE(cache.is_exact());
  return cache;
}

kv_state state(std::uint32_t exact, std::uint32_t stale) { return {.exact = exact, .stale = stale}; }

TEST(kv_estimate, tells_of_no_edits_where_everything_behind_them_is_computed_again) {
  auto cache = cache_with(hundred(), kv::splice_policy::exact);
  EXPECT_TRUE(cache.follow(edited(hundred(), 10, 1, {7})).empty());
  EXPECT_EQ(cache.state(), state(100, 0));
}

TEST(kv_estimate, counts_what_lies_behind_an_edit_as_stale) {
  auto cache = cache_with(hundred());
  auto next = edited(hundred(), 10, 1, {1007, 1008});
  next.push_back(2000);
  const auto told = cache.follow(next);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].at, 10U);
  EXPECT_EQ(told[0].removed_count, 1U);
  EXPECT_EQ(told[0].tokens, (tokens{1007, 1008}));
  EXPECT_EQ(told[0].policy, kv::splice_policy::pie);
  EXPECT_EQ(cache.state(), state(12, 90));  // what is new at the end has seen stale tokens
  EXPECT_EQ(cache.log(), next);
}

TEST(kv_estimate, tells_of_several_places_at_once) {
  auto cache = cache_with(hundred());
  const auto told = cache.follow(edited(edited(hundred(), 80, 2, {}), 30, 0, {1000}));
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].at, 30U);
  EXPECT_EQ(told[1].at, 81U);
  EXPECT_EQ(cache.state(), state(31, 68));
}

TEST(kv_estimate, is_exact_again_once_all_that_was_stale_is_computed_anew) {
  auto cache = cache_with(hundred());
  const auto next = edited(hundred(), 50, 0, {1000});
  EXPECT_EQ(cache.follow(next).size(), 1U);
  EXPECT_EQ(cache.state(), state(51, 50));
  EXPECT_TRUE(cache.follow(edited(next, 60, 41, {3000})).empty());
  EXPECT_EQ(cache.state(), state(51, 10));
  EXPECT_TRUE(cache.follow(edited(next, 51, 50, {3000, 3001})).empty());  // differs where the stale ones begin
  EXPECT_EQ(cache.state(), state(53, 0));
}

TEST(kv_estimate, stays_exact_when_edits_touch_only_the_end) {
  auto cache = cache_with(hundred());
  EXPECT_TRUE(cache.follow(edited(hundred(), 100, 0, {4, 5})).empty());
  EXPECT_TRUE(cache.follow(edited(hundred(), 90, 10, {4, 5})).empty());
  EXPECT_EQ(cache.state(), state(92, 0));
}

TEST(kv_estimate, keeps_nothing_without_the_first_token) {
  auto cache = cache_with(hundred());
  EXPECT_TRUE(cache.follow(edited(hundred(), 0, 0, {1000})).empty());
  EXPECT_EQ(cache.state(), state(101, 0));
}

TEST(kv_estimate, believes_the_scheduler) {
  auto cache = cache_with(hundred());
  EXPECT_EQ(cache.follow(edited(hundred(), 50, 1, {})).size(), 1U);
  EXPECT_EQ(cache.state(), state(50, 49));
  cache.note_exact(99);
  EXPECT_TRUE(cache.is_exact());
}

}  // namespace
}  // namespace redline::actors
