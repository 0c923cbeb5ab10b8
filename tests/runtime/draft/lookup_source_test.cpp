#include "runtime/draft/lookup_source.hpp"

#include <gtest/gtest.h>

#include <random>

namespace redline::draft {
namespace {

using tokens = std::vector<token>;

void catch_up(draft_source& s) {
  while (s.catch_up(1000)) {
  }
}
lookup_source source_of(const tokens& log, std::uint32_t ngram_max = 10) {
  lookup_source s(ngram_max);
  s.append(log, true);
  catch_up(s);
  return s;
}

TEST(lookup_source, drafts_what_followed_before_with_the_match_as_its_grade) {
  const auto s = source_of({1, 2, 3, 4, 5, 6, 1, 2, 3});
  const graded_draft d = s.look({}, 2);
  EXPECT_EQ(d.tokens, (tokens{4, 5}));
  ASSERT_EQ(d.runs.size(), 1u);
  EXPECT_EQ(d.runs[0].from, source::lookup);
  EXPECT_EQ(d.runs[0].grade, grade_of_match(3));
  EXPECT_EQ(d.runs[0].count, 2u);
  EXPECT_EQ(s.stands(), standing::text);
}

TEST(lookup_source, looks_after_what_is_pending) {
  const auto s = source_of({1, 2, 3, 4, 5, 6, 1});
  EXPECT_EQ(s.look(tokens{2, 3}, 2).tokens, (tokens{4, 5}));
  EXPECT_TRUE(s.look(tokens{99}, 2).tokens.empty());
  EXPECT_EQ(s.look({}, 1).tokens, (tokens{2})) << "and forgets it";
}

TEST(lookup_source, looks_up_no_longer_ngrams_than_it_is_told) {
  const tokens log = {1, 2, 3, 4, 5, 6, 1, 2, 3};
  EXPECT_EQ(source_of(log, 2).look({}, 1).runs.at(0).grade, grade_of_match(2));
  EXPECT_TRUE(source_of(log, 0).look({}, 1).tokens.empty());
}

TEST(lookup_source, of_nothing_says_nothing) {
  lookup_source s(10);
  EXPECT_FALSE(s.catch_up(10));
  EXPECT_TRUE(s.look({}, 10).tokens.empty());
  EXPECT_TRUE(source_of({1, 2, 1}).look({}, 0).tokens.empty());
}

TEST(lookup_source, finds_nothing_until_it_has_caught_up) {
  lookup_source s(10);
  s.append(tokens{1, 2, 3, 4, 1, 2}, true);
  EXPECT_TRUE(s.look({}, 2).tokens.empty());
  EXPECT_TRUE(s.catch_up(2));
  EXPECT_TRUE(s.look({}, 2).tokens.empty()) << "it can only continue from the end of the log";
  EXPECT_TRUE(s.catch_up(3));
  EXPECT_FALSE(s.catch_up(1));
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{3, 4}));
  s.append(tokens{3}, false);
  EXPECT_TRUE(s.look({}, 2).tokens.empty());
  EXPECT_FALSE(s.catch_up(1));
  EXPECT_EQ(s.look({}, 1).tokens, (tokens{4}));
}

// Whatever is appended and dropped, and whenever it catches up, the result is as if the remaining log had come at once.
TEST(lookup_source, after_a_drop_is_like_one_of_the_log_that_is_left) {
  std::mt19937 random(11);
  for (int world = 0; world < 200; ++world) {
    lookup_source s(8);
    tokens log;
    for (int step = 0; step < 20; ++step) {
      if (random() % 3 == 0) {
        const std::size_t at = random() % (log.size() + 1), count = random() % (log.size() - at + 1);
        s.drop(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(count));
        const auto begin = log.begin() + static_cast<std::ptrdiff_t>(at);
        log.erase(begin, begin + static_cast<std::ptrdiff_t>(count));
      } else {
        tokens more(random() % 12);
        for (token& t : more) t = static_cast<token>(random() % 4);
        s.append(more, false);
        log.insert(log.end(), more.begin(), more.end());
      }
      if (random() % 2 == 0) {
        (void)s.catch_up(1 + random() % 5);
        continue;
      }
      catch_up(s);
      const graded_draft got = s.look({}, 6), expected = source_of(log, 8).look({}, 6);
      ASSERT_EQ(got.tokens, expected.tokens) << world;
      if (!got.runs.empty()) {
        ASSERT_EQ(got.runs[0].grade, expected.runs[0].grade);
      }
    }
  }
}

TEST(lookup_source, lives_with_a_drop_beyond_its_log) {
  auto s = source_of({1, 2, 3, 4, 1, 2});
  s.drop(4, 1000);
  catch_up(s);
  s.append(tokens{1, 2}, false);
  catch_up(s);
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{3, 4}));
  s.drop(100, 5);
  catch_up(s);
  EXPECT_EQ(s.look({}, 2).tokens, (tokens{3, 4}));
}

TEST(lookup_source, lets_a_long_log_go_in_parts) {
  std::vector<token> log(10'000);
  for (std::size_t i = 0; i < log.size(); ++i) log[i] = static_cast<token>(i);
  lookup_source s(10);
  s.append(log, true);
  while (s.catch_up(1000)) {
  }
  s.drop(100, 9000);
  int parts = 1;
  for (; s.catch_up(1000); ++parts) EXPECT_TRUE(s.look({}, 4).tokens.empty());
  EXPECT_GE(parts, 10) << "9,900 tokens leave the index, and 900 come back";
  const std::vector<token> again{9100, 9101};
  s.append(again, false);
  EXPECT_FALSE(s.catch_up(1000));
  EXPECT_EQ(s.look({}, 2).tokens, (std::vector<token>{9102, 9103}));
}

}  // namespace
}  // namespace redline::draft
