#include "runtime/text/prompt_lookup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::text {
namespace {

/// The definition, searched naively.
std::vector<token> search(std::vector<token> all, std::size_t ngram_max, std::size_t draft_max) {
  for (std::size_t g = std::min(ngram_max, all.size() - 1); g >= 1; --g) {
    for (std::size_t start = 0; start + g < all.size(); ++start) {
      if (!std::equal(all.end() - static_cast<std::ptrdiff_t>(g), all.end(), all.begin() + static_cast<std::ptrdiff_t>(start))) continue;
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(start + g);
      return {from, from + static_cast<std::ptrdiff_t>(std::min<std::size_t>(draft_max, static_cast<std::size_t>(all.end() - from)))};
    }
  }
  return {};
}

TEST(prompt_lookup, continues_the_earliest_longest_match) {
  prompt_lookup log;
  log.append(std::vector<token>{1, 2, 3, 4, 9, 2, 3, 5, 2, 3});
  EXPECT_EQ(log.propose({}, 10, 3), (std::vector<token>{4, 9, 2}));
  EXPECT_EQ(log.propose(std::vector<token>{5}, 10, 2), (std::vector<token>{2, 3}));
  EXPECT_TRUE(log.propose(std::vector<token>{77}, 10, 2).empty());
}

TEST(prompt_lookup, agrees_with_a_naive_search_while_the_log_grows_and_shrinks) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 300; ++trial) {
    prompt_lookup log;
    std::vector<token> model;
    for (int step = 0; step < 20; ++step) {
      if (random() % 4 == 0) {
        model.resize(random() % (model.size() + 1));
        log.truncate(model.size());
      } else {
        std::vector<token> more(random() % 8);
        for (auto& t : more) t = static_cast<token>(random() % 4);
        model.insert(model.end(), more.begin(), more.end());
        log.append(more);
      }
      std::vector<token> pending(random() % 4);
      for (auto& t : pending) t = static_cast<token>(random() % 4);
      auto all = model;
      all.insert(all.end(), pending.begin(), pending.end());
      const auto ngram_max = 1 + random() % 5;
      const auto draft_max = 1 + random() % 6;
      if (all.size() < 2) continue;
      ASSERT_EQ(log.propose(pending, static_cast<std::uint32_t>(ngram_max), static_cast<std::uint32_t>(draft_max)),
                search(all, ngram_max, draft_max));
    }
  }
}

}  // namespace
}  // namespace redline::text
