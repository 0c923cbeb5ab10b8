#include "bench/studies/common/least_rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "bench/studies/common/answer_replay.hpp"

namespace redline::studies {
namespace {

using tokens = std::vector<token>;

tokens counted(token first, std::size_t count) {
  tokens out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

TEST(least_rounds, copies_an_unchanged_text_in_one_round_after_the_prompt) {
  EXPECT_EQ(least_rounds(counted(0, 100), counted(0, 100), 0), 2U);
  EXPECT_EQ(least_rounds(counted(0, 1), counted(0, 1), 0), 1U);
  EXPECT_EQ(least_rounds(counted(0, 1), {}, 0), 0U);
}

TEST(least_rounds, are_one_for_each_new_token_and_each_deletion) {
  const tokens before = counted(0, 100);
  tokens answer = before;
  answer.insert(answer.begin() + 50, {500, 501, 502});
  EXPECT_EQ(least_rounds(before, answer, 0), 2U + 3U);
  answer.erase(answer.begin() + 70, answer.begin() + 80);
  EXPECT_EQ(least_rounds(before, answer, 0), 2U + 3U + 1U);
  EXPECT_EQ(least_rounds(before, counted(500, 40), 0), 40U) << "as many as without drafts";
}

TEST(least_rounds, count_a_repetition_of_the_answer_itself_as_a_copy) {
  tokens answer(100, 7);
  EXPECT_EQ(least_rounds(counted(10, 5), answer, 0), 2U);
}

TEST(least_rounds, go_on_where_the_model_is_right) {
  const tokens before = counted(0, 1000);
  tokens answer = before;
  const tokens inserted = counted(5000, 500);
  answer.insert(answer.begin() + 300, inserted.begin(), inserted.end());
  EXPECT_EQ(least_rounds(before, answer, 1), 2U);
  std::uint32_t wrong = 0;
  for (std::size_t i = 300; i < 800; ++i) wrong += model_is_right(i, answer.size(), 0.8) ? 0 : 1;
  EXPECT_NEAR(wrong, 100, 30);
  EXPECT_EQ(least_rounds(before, answer, 0.8), 2U + wrong);
}

/// The same without a model, by comparing the answer with every earlier position.
std::uint32_t by_search(const tokens& prompt, const tokens& answer) {
  tokens all = prompt;
  all.insert(all.end(), answer.begin(), answer.end());
  std::uint32_t rounds = 1;
  for (std::size_t at = prompt.size() + 1; at < all.size(); ++rounds) {
    std::size_t longest = 0;
    for (std::size_t from = 0; from < at; ++from) {
      std::size_t n = 0;
      while (at + n < all.size() && all[from + n] == all[at + n]) ++n;
      longest = std::max(longest, n);
    }
    at += longest + 1;
  }
  return rounds;
}

TEST(least_rounds, equal_a_search_of_all_earlier_positions) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const auto drawn = [&](std::size_t count, token kinds) {
      tokens out(count);
      for (token& t : out) t = static_cast<token>(random() % static_cast<unsigned>(kinds));
      return out;
    };
    const auto kinds = static_cast<token>(2 + random() % 20);
    const tokens prompt = drawn(random() % 80, kinds);
    const tokens answer = drawn(1 + random() % 120, kinds + 3);
    ASSERT_EQ(least_rounds(prompt, answer, 0), by_search(prompt, answer)) << i;
  }
}

}  // namespace
}  // namespace redline::studies
