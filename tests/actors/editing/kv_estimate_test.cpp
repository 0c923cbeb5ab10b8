#include "actors/editing/kv_estimate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace redline::actors {
namespace {

using tokens = std::vector<token>;

/// The tokens 0 to 99.
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
  EXPECT_TRUE(cache.follow(std::move(log)).splices.empty());
  EXPECT_TRUE(cache.is_exact());
  return cache;
}

kv_state state(std::uint32_t exact, std::uint32_t stale) { return {.exact = exact, .stale = stale}; }

TEST(kv_estimate, tells_of_no_edits_where_everything_behind_them_is_computed_again) {
  auto cache = cache_with(hundred(), kv::splice_policy::exact);
  EXPECT_TRUE(cache.follow(edited(hundred(), 10, 1, {7})).splices.empty());
  EXPECT_EQ(cache.state(), state(100, 0));
}

TEST(kv_estimate, counts_what_lies_behind_an_edit_as_stale) {
  auto cache = cache_with(hundred());
  auto next = edited(hundred(), 10, 1, {1007, 1008});
  next.push_back(2000);
  const auto told = cache.follow(next).splices;
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].at, 10U);
  EXPECT_EQ(told[0].removed_count, 1U);
  EXPECT_EQ(told[0].tokens, (tokens{1007, 1008}));
  EXPECT_EQ(told[0].policy, kv::splice_policy::pie);
  EXPECT_EQ(cache.state(), state(12, 90));  // new tokens at the end attend to stale ones
  EXPECT_TRUE(std::ranges::equal(cache.log(), next));
}

TEST(kv_estimate, tells_of_several_places_at_once) {
  auto cache = cache_with(hundred());
  const auto told = cache.follow(edited(edited(hundred(), 80, 2, {}), 30, 0, {1000})).splices;
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].at, 30U);
  EXPECT_EQ(told[1].at, 81U);
  EXPECT_EQ(cache.state(), state(31, 68));
}

TEST(kv_estimate, is_exact_again_once_all_that_was_stale_is_computed_anew) {
  auto cache = cache_with(hundred());
  const auto next = edited(hundred(), 50, 0, {1000});
  EXPECT_EQ(cache.follow(next).splices.size(), 1U);
  EXPECT_EQ(cache.state(), state(51, 50));
  EXPECT_TRUE(cache.follow(edited(next, 60, 41, {3000})).splices.empty());
  EXPECT_EQ(cache.state(), state(51, 10));
  EXPECT_TRUE(cache.follow(edited(next, 51, 50, {3000, 3001})).splices.empty());  // differs at the first stale token
  EXPECT_EQ(cache.state(), state(53, 0));
}

TEST(kv_estimate, stays_exact_when_edits_touch_only_the_end) {
  auto cache = cache_with(hundred());
  EXPECT_TRUE(cache.follow(edited(hundred(), 100, 0, {4, 5})).splices.empty());
  EXPECT_TRUE(cache.follow(edited(hundred(), 90, 10, {4, 5})).splices.empty());
  EXPECT_EQ(cache.state(), state(92, 0));
}

TEST(kv_estimate, keeps_nothing_without_the_first_token) {
  auto cache = cache_with(hundred());
  EXPECT_TRUE(cache.follow(edited(hundred(), 0, 0, {1000})).splices.empty());
  EXPECT_EQ(cache.state(), state(101, 0));
}

tokens part(const tokens& of, std::size_t begin, std::size_t end) {
  return {of.begin() + static_cast<std::ptrdiff_t>(begin), of.begin() + static_cast<std::ptrdiff_t>(end)};
}

bool has(const kv_estimate& cache, const tokens& log) { return std::ranges::equal(cache.log(), log); }

TEST(kv_estimate, keeps_what_is_known_behind_the_prompt_that_is_expected) {
  auto cache = cache_with(hundred());
  const auto next = edited(hundred(), 30, 0, {1000});
  const auto step = cache.expect(part(next, 0, 31), part(next, 31, 101));
  ASSERT_EQ(step.splices.size(), 1U);
  EXPECT_EQ(step.splices[0].at, 30U);
  EXPECT_TRUE(has(cache, next)) << "more than the prompt alone";
  EXPECT_EQ(cache.state(), state(31, 70));
  EXPECT_FALSE(cache.expect(part(next, 0, 60), part(next, 60, 101)).is_new) << "another position of the same text";
  const auto read = cache.follow(part(next, 0, 90), part(next, 90, 101));
  EXPECT_TRUE(read.is_new);
  EXPECT_TRUE(read.splices.empty());
  EXPECT_TRUE(has(cache, part(next, 0, 90))) << "an answer replaces what came after it";
}

TEST(kv_estimate, computes_nothing_behind_the_prompt) {
  // The text after it is longer than a search for differences examines.
  tokens all(4000);
  std::iota(all.begin(), all.end(), 0);
  kv_estimate cache(kv::splice_policy::pie);
  EXPECT_TRUE(cache.expect(part(all, 0, 40), part(all, 40, all.size())).is_new);
  EXPECT_TRUE(has(cache, part(all, 0, 40)));
  const auto next = edited(all, 10, 1, {5007, 5008});
  EXPECT_EQ(cache.expect(part(next, 0, 20), part(next, 20, next.size())).splices.size(), 1U);
  EXPECT_TRUE(has(cache, part(next, 0, 41))) << "the known tokens, moved by one";
  EXPECT_TRUE(cache.expect(part(next, 0, 50), part(next, 50, next.size())).splices.empty());
  EXPECT_TRUE(has(cache, part(next, 0, 50)));
}

TEST(kv_estimate, keeps_what_stands_before_a_change_behind_the_place_whatever_the_policy) {
  auto cache = cache_with(hundred(), kv::splice_policy::exact);
  const auto next = edited(hundred(), 70, 1, {1000});
  EXPECT_TRUE(cache.expect(part(next, 0, 20), part(next, 20, 100)).splices.empty());
  EXPECT_TRUE(has(cache, part(next, 0, 70)));
  EXPECT_EQ(cache.state(), state(70, 0));
}

TEST(kv_estimate, leaves_what_was_answered_alone_while_it_is_typed) {
  auto cache = cache_with(part(hundred(), 0, 50));
  const auto all = hundred();
  EXPECT_FALSE(cache.expect(part(all, 0, 50), part(all, 50, 100)).is_new) << "the answer's KV follows the log";
  const auto typed = edited(all, 50, 0, {1000, 1001});
  const auto step = cache.expect(part(typed, 0, 52), part(typed, 52, 102));
  EXPECT_TRUE(step.is_new);
  EXPECT_TRUE(step.splices.empty()) << "a splice would move the answer after the typed part of it";
  EXPECT_TRUE(has(cache, part(typed, 0, 52)));
}

TEST(kv_estimate, believes_the_scheduler) {
  auto cache = cache_with(hundred());
  EXPECT_EQ(cache.follow(edited(hundred(), 50, 1, {})).splices.size(), 1U);
  EXPECT_EQ(cache.state(), state(50, 49));
  cache.note_exact(99);
  EXPECT_TRUE(cache.is_exact());
}

}  // namespace
}  // namespace redline::actors
