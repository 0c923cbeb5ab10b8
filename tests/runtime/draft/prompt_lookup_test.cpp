#include "runtime/draft/prompt_lookup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

/// The definition, as a naive search over the whole text.
class naive_lookup {
 public:
  static tokens propose(const tokens& log, const tokens& pending, std::size_t ngram_max, std::size_t draft_max) {
    tokens all = log;
    all.insert(all.end(), pending.begin(), pending.end());
    std::size_t cursor = 0;
    for (std::size_t i = 0; i < all.size(); ++i) cursor = moved(all, i, std::min(i, log.size()), cursor);
    std::size_t best = 0, best_length = 0;
    for (std::size_t place = 1; place < all.size(); ++place) {
      const std::size_t length = std::min(ngram_max, agreement(all, place, all.size()));
      if (length == 0) continue;
      if (length > best_length || (length == best_length && nearer(place, best, cursor))) {
        best = place;
        best_length = length;
      }
    }
    if (best_length == 0) return {};
    tokens draft;
    while (draft.size() < draft_max && (best + draft.size() < all.size() || draft.size() < best_length)) {
      const std::size_t from = best + draft.size();
      draft.push_back(from < all.size() ? all[from] : draft[from - all.size()]);
    }
    return draft;
  }

 private:
  static std::size_t agreement(const tokens& all, std::size_t a, std::size_t b) {
    std::size_t length = 0;
    while (length < a && length < b && all[a - 1 - length] == all[b - 1 - length]) ++length;
    return length;
  }
  static bool nearer(std::size_t a, std::size_t b, std::size_t cursor) {
    if ((a >= cursor) != (b >= cursor)) return a >= cursor;
    return a >= cursor ? a < b : a > b;
  }
  static std::size_t moved(const tokens& all, std::size_t index, std::size_t known_count, std::size_t cursor) {
    if (cursor > 0 && cursor < index && all[cursor] == all[index]) return cursor + 1;
    std::size_t best = 0;
    for (std::size_t place = 4; place <= known_count; ++place) {
      if (agreement(all, place, index + 1) >= 4 && (best == 0 || nearer(place, best, cursor))) best = place;
    }
    return best == 0 ? cursor : best;
  }
};

TEST(prompt_lookup, continues_the_longest_match) {
  prompt_lookup log;
  log.append(tokens{1, 2, 3, 4, 9, 2, 3, 5, 7, 2, 3, 4});
  EXPECT_EQ(log.propose({}, 10, 3), (tokens{9, 2, 3}));
  EXPECT_EQ(log.propose({}, 10, 100), (tokens{9, 2, 3, 5, 7, 2, 3, 4})) << "up to the end of the text";
  EXPECT_EQ(log.propose(tokens{9, 2, 3}, 10, 2), (tokens{5, 7}));
  EXPECT_EQ(log.propose(tokens{5}, 10, 2), (tokens{7, 2})) << "falls back to shorter n-grams";
  EXPECT_TRUE(log.propose(tokens{77}, 10, 2).empty());
  EXPECT_TRUE(log.propose({}, 0, 2).empty());
  EXPECT_TRUE(log.propose({}, 10, 0).empty());
  EXPECT_TRUE(prompt_lookup().propose({}, 10, 10).empty());
}

TEST(prompt_lookup, looks_into_pending_tokens) {
  prompt_lookup log;
  log.append(tokens{1, 2});
  EXPECT_EQ(log.propose(tokens{5, 6, 7, 5, 6}, 10, 9), (tokens{7, 5, 6}));
  EXPECT_EQ(prompt_lookup().propose(tokens{5, 6, 5}, 10, 9), (tokens{6, 5}));
}

TEST(prompt_lookup, prefers_the_occurrence_behind_the_place_copied_last) {
  // The file calls f(x) three times; the answer has copied it up to its second call.
  const tokens file = {10, 1, 2, 11, 12, 13, 14, 1, 2, 21, 22, 23, 24, 1, 2, 31};
  prompt_lookup log;
  log.append(file);
  log.append(std::span(file).first(7));
  EXPECT_EQ(log.propose({}, 10, 3), (tokens{1, 2, 21}));
  log.append(tokens{99, 2});  // after an edit only the single 2 matches, and it occurs at three positions
  EXPECT_EQ(log.propose({}, 10, 1), (tokens{21}));
}

TEST(prompt_lookup, agrees_with_a_naive_search_while_the_log_grows_and_shrinks) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 600; ++trial) {
    prompt_lookup log;
    tokens model;
    const unsigned alphabet = 2 + random() % 5;
    for (int step = 0; step < 20; ++step) {
      if (random() % 5 == 0) {
        model.resize(random() % (model.size() + 1));
        log.truncate(model.size());
      } else if (random() % 3 == 0 && !model.empty()) {  // repeat a part, as an edit does
        const std::size_t from = random() % model.size(), count = random() % (model.size() - from + 1);
        const tokens part(model.begin() + static_cast<std::ptrdiff_t>(from),
                          model.begin() + static_cast<std::ptrdiff_t>(from + std::min<std::size_t>(count, 20)));
        model.insert(model.end(), part.begin(), part.end());
        log.append(part);
      } else {
        tokens more(random() % 8);
        for (auto& t : more) t = static_cast<token>(random() % alphabet);
        model.insert(model.end(), more.begin(), more.end());
        log.append(more);
      }
      ASSERT_TRUE(std::ranges::equal(log.tokens(), model));
      if (model.size() >= prompt_lookup::occurrences_max) break;
      tokens pending(random() % 6);
      for (auto& t : pending) t = static_cast<token>(random() % alphabet);
      const auto ngram_max = static_cast<std::uint32_t>(1 + random() % 9);
      const auto draft_max = static_cast<std::uint32_t>(1 + random() % 6);
      ASSERT_EQ(log.propose(pending, ngram_max, draft_max),
                naive_lookup::propose(model, pending, ngram_max, draft_max));
    }
  }
}

TEST(prompt_lookup, gives_the_same_after_a_truncation_as_without_the_detour) {
  std::mt19937 random(8);
  prompt_lookup straight, detour;
  for (int step = 0; step < 300; ++step) {
    tokens more(1 + random() % 5), lost(random() % 40);
    for (auto& t : more) t = static_cast<token>(random() % 3);
    for (auto& t : lost) t = static_cast<token>(random() % 3);
    straight.append(more);
    detour.append(more);
    const std::size_t count = detour.tokens().size();
    detour.append(lost);
    detour.truncate(count);
    ASSERT_EQ(detour.propose({}, 8, 20), straight.propose({}, 8, 20));
  }
}

TEST(prompt_lookup, goes_on_with_a_repetition_for_as_long_as_it_has_lasted) {
  prompt_lookup log;
  log.append(tokens{1, 7, 8, 7, 8, 7, 8});
  EXPECT_EQ(log.propose({}, 10, 99), (tokens{7, 8, 7, 8}));
  EXPECT_EQ(log.propose({}, 2, 99), (tokens{7, 8}));
  EXPECT_EQ(log.propose({}, 10, 3), (tokens{7, 8, 7}));
}

TEST(prompt_lookup, bounds_its_work_on_a_log_of_one_token) {
  prompt_lookup log;
  log.append(tokens(20'000, 5));
  for (int i = 0; i < 2'000; ++i) ASSERT_EQ(log.propose(tokens{5, 5}, 10, 4).size(), 4u) << i;
}

}  // namespace
}  // namespace redline::draft
