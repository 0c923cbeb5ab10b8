#include "runtime/draft/reading_window.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <utility>

namespace redline::draft {
namespace {

/// Tokens that equal their positions.
std::vector<token> places(std::size_t count) {
  std::vector<token> log(count);
  std::iota(log.begin(), log.end(), 0);
  return log;
}

bool shows(const std::vector<token>& seen, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    if (!std::binary_search(seen.begin(), seen.end(), static_cast<token>(i))) return false;
  }
  return true;
}

TEST(reading_window, shows_a_log_that_fits_whole) {
  reading_window w;
  for (const std::size_t count : {0U, 1U, 900U}) {
    w.follow(count, count / 2, 100, 1000);
    EXPECT_EQ(w.read(places(count)), places(count));
    EXPECT_EQ(w.count(count), count);
  }
}

TEST(reading_window, shows_the_beginning_what_is_copied_and_the_end_of_a_longer_one) {
  reading_window w;
  w.follow(5000, 2000, 100, 1000);
  const auto seen = w.read(places(5000));
  EXPECT_EQ(seen.size(), w.count(5000));
  EXPECT_LE(seen.size() + 100, 1000U);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_TRUE(shows(seen, 0, 32)) << "the beginning";
  EXPECT_TRUE(shows(seen, 1900, 2200)) << "around the position and after it";
  EXPECT_TRUE(shows(seen, 4750, 5000)) << "the end";
}

TEST(reading_window, tells_how_much_of_it_was_seen) {
  for (const std::size_t count : {900U, 5000U}) {
    reading_window w;
    w.follow(count, count / 2, 100, 1000);
    const auto log = places(count);
    auto seen = w.read(log);
    EXPECT_EQ(w.matching(log, seen), seen.size());
    EXPECT_EQ(w.matching(log, {}), 0U);
    for (const std::size_t at : {std::size_t{0}, std::size_t{40}, seen.size() / 2, seen.size() - 1}) {
      const auto other = std::exchange(seen[at], -1);
      EXPECT_EQ(w.matching(log, seen), at);
      seen[at] = other;
      EXPECT_EQ(w.matching(log, std::span(seen).first(at)), at);
    }
    seen.push_back(7);
    EXPECT_EQ(w.matching(log, seen), seen.size() - 1) << "more than the window contains";
  }
}

TEST(reading_window, stays_while_the_log_grows_so_that_nothing_is_computed_anew) {
  reading_window w;
  w.follow(5000, 2000, 50, 1000);
  const auto before = w.read(places(5000));
  for (std::size_t more = 1; more < 200; ++more) {
    w.follow(5000 + more, 2000 + more, 50, 1000);
    const auto seen = w.read(places(5000 + more));
    ASSERT_EQ(seen.size(), before.size() + more) << more;
    ASSERT_TRUE(std::equal(before.begin(), before.end(), seen.begin()));
  }
}

TEST(reading_window, goes_along_with_the_copying) {
  reading_window w;
  w.follow(5000, 2000, 50, 1000);
  for (std::size_t more = 0; more < 2000; more += 5) {
    w.follow(5000 + more, 2000 + more, 50, 1000);
    const auto seen = w.read(places(5000 + more));
    ASSERT_LE(seen.size() + 50, 1000U);
    ASSERT_TRUE(shows(seen, 2000 + more, 2000 + more + 20)) << more;
    ASSERT_TRUE(shows(seen, 5000 + more - 200, 5000 + more)) << more;
  }
}

TEST(reading_window, does_not_jump_about_with_a_place_that_does) {
  reading_window w;
  w.follow(5000, 2000, 50, 1000);
  std::mt19937 random(3);
  int moved = 0;
  auto last = w.read(places(5000));
  for (std::size_t more = 1; more <= 640; ++more) {
    w.follow(5000 + more, random() % 4000, 50, 1000);
    const auto seen = w.read(places(5000 + more));
    moved += seen.size() != last.size() + 1 || !std::equal(last.begin(), last.end(), seen.begin()) ? 1 : 0;
    last = seen;
  }
  EXPECT_GT(moved, 2);
  EXPECT_LE(moved, 10);
}

TEST(reading_window, shows_a_log_whole_again_that_was_cut_before_its_end) {
  reading_window w;
  w.follow(5000, 2000, 50, 1000);
  w.cut(4990);
  EXPECT_LT(w.count(4990), 1000U) << "within the end of the window";
  w.cut(300);
  w.follow(300, 100, 50, 1000);
  EXPECT_EQ(w.read(places(300)), places(300));
}

TEST(reading_window, fits_any_log_and_place_into_any_context) {
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    reading_window w;
    const std::size_t most = 8 + random() % 600;
    std::size_t count = random() % 3000;
    for (int step = 0; step < 4; ++step) {
      const std::size_t room = random() % (most / 4 + 1);
      w.follow(count, random() % (count + 1), room, most);
      const auto seen = w.read(places(count));
      ASSERT_LE(seen.size() + room, most);
      ASSERT_TRUE(std::is_sorted(seen.begin(), seen.end()));
      ASSERT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << "nothing twice";
      if (count > 0) {
        ASSERT_EQ(seen.back(), static_cast<token>(count - 1));
      }
      if (random() % 4 == 0) {
        count = random() % (count + 1);
        w.cut(count);
      } else {
        count += random() % 300;
      }
    }
  }
}

}  // namespace
}  // namespace redline::draft
