#include "runtime/text/token_diff.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace redline::text {
namespace {

using tokens = std::vector<token>;

tokens applied(tokens log, const std::vector<token_splice>& splices) {
  for (const auto& s : splices) {
    EXPECT_LE(s.at + s.remove_count, log.size());
    const auto first = log.begin() + s.at;
    log.insert(log.erase(first, first + s.remove_count), s.insert.begin(), s.insert.end());
  }
  return log;
}

std::size_t differences(const std::vector<token_splice>& splices) {
  std::size_t sum = 0;
  for (const auto& s : splices) sum += s.remove_count + s.insert.size();
  return sum;
}

/// The textbook algorithm with a table.
std::size_t differences_at_least(const tokens& a, const tokens& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (const token x : a) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t up = row[j];
      row[j] = x == b[j - 1] ? diagonal : std::min(up, row[j - 1]) + 1;
      diagonal = up;
    }
  }
  return row.back();
}

TEST(token_diff, finds_each_place_of_an_edit) {
  tokens before(100);
  std::iota(before.begin(), before.end(), 1000);
  tokens after = before;
  after.erase(after.begin() + 70, after.begin() + 75);
  after.insert(after.begin() + 20, {1, 2, 3});
  const std::vector<token_splice> expected = {{20, 0, {1, 2, 3}}, {73, 5, {}}};
  EXPECT_EQ(diff_tokens(before, after, 16), expected);
  EXPECT_TRUE(diff_tokens(before, before, 16).empty());
  EXPECT_EQ(diff_tokens({}, after, 16).size(), 1U);
  EXPECT_EQ(diff_tokens(before, {}, 16).at(0).remove_count, 100U);
}

TEST(token_diff, replaces_short_runs_between_changes_with_them) {
  const tokens before = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const tokens after = {1, 20, 3, 4, 50, 6, 7, 8, 9};
  EXPECT_EQ(diff_tokens(before, after, 2).size(), 2U);
  const std::vector<token_splice> expected = {{1, 4, {20, 3, 4, 50}}};
  EXPECT_EQ(diff_tokens(before, after, 3), expected);
}

TEST(token_diff, replaces_all_where_too_much_differs) {
  tokens before(4000);
  tokens after(3000);
  std::iota(before.begin(), before.end(), 0);
  std::iota(after.begin(), after.end(), 10'000);
  before.back() = after.back();
  const auto splices = diff_tokens(before, after, 16);
  ASSERT_EQ(splices.size(), 1U);
  EXPECT_EQ(splices[0].remove_count, 3999U);
  EXPECT_EQ(applied(before, splices), after);
}

TEST(token_diff, leads_from_any_sequence_to_any_other_in_as_few_steps_as_there_can_be) {
  std::mt19937_64 chance(7);
  for (int round = 0; round < 3000; ++round) {
    const std::uint64_t tokenizer = 1 + chance() % 5;
    const auto some = [&](std::size_t max) {
      tokens out(chance() % (max + 1));
      for (token& t : out) t = static_cast<token>(chance() % tokenizer);
      return out;
    };
    const tokens before = some(40);
    tokens after = before;
    for (std::uint64_t n = chance() % 4; n > 0; --n) {
      const std::size_t begin = chance() % (after.size() + 1);
      const std::size_t end = begin + chance() % (after.size() - begin + 1);
      const auto with = some(5);
      after.insert(after.erase(after.begin() + static_cast<std::ptrdiff_t>(begin),
                               after.begin() + static_cast<std::ptrdiff_t>(end)),
                   with.begin(), with.end());
    }
    const auto exactly = diff_tokens(before, after, 1);
    ASSERT_EQ(applied(before, exactly), after);
    ASSERT_EQ(differences(exactly), differences_at_least(before, after));
    const auto kept_min = static_cast<std::uint32_t>(1 + chance() % 6);
    const auto joined = diff_tokens(before, after, kept_min);
    ASSERT_EQ(applied(before, joined), after);
    std::uint32_t end = 0;
    for (const auto& s : joined) {
      ASSERT_FALSE(s.empty());
      ASSERT_TRUE(&s == joined.data() || s.at >= end + kept_min);
      end = s.at + static_cast<std::uint32_t>(s.insert.size());
    }
  }
}

}  // namespace
}  // namespace redline::text
