#include "scheduler/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace redline::scheduler {
namespace {

TEST(coverage, finds_the_first_gap) {
  coverage c;
  EXPECT_EQ(c.first_gap(10), (token_range{0, 10}));
  c.add({0, 10});
  EXPECT_EQ(c.first_gap(10).count(), 0u);
  EXPECT_EQ(c.first_gap(12), (token_range{10, 12}));
  c.splice(4, 1, 3);
  EXPECT_EQ(c.first_gap(12), (token_range{4, 7}));
  EXPECT_EQ(c.count(), 9u);
  EXPECT_EQ(c.count_before(8), 5u);
  c.add({4, 6});
  EXPECT_EQ(c.first_gap(12), (token_range{6, 7}));
  c.keep(2);
  EXPECT_EQ(c.first_gap(12), (token_range{2, 12}));
}

TEST(coverage, agrees_with_a_list_of_bits_under_random_operations) {
  std::mt19937 random(3);
  for (int world = 0; world < 200; ++world) {
    coverage c;
    std::vector<bool> model;
    for (int step = 0; step < 60; ++step) {
      const auto size = static_cast<std::uint32_t>(model.size());
      const std::uint32_t at = random() % (size + 1);
      switch (random() % 4) {
        case 0: {
          const token_range gap = c.first_gap(size);
          const token_range some{gap.begin, gap.begin + static_cast<std::uint32_t>(random() % (gap.count() + 1))};
          c.add(some);
          std::fill(model.begin() + some.begin, model.begin() + some.end, true);
          break;
        }
        case 1:
          c.keep(at);
          std::fill(model.begin() + at, model.end(), false);
          break;
        default: {
          const std::uint32_t removed = random() % std::min(size - at + 1, 5u);
          const std::uint32_t inserted = random() % 7;
          c.splice(at, removed, inserted);
          model.erase(model.begin() + at, model.begin() + at + removed);
          model.insert(model.begin() + at, inserted, false);
        }
      }
      c.check_integrity();
      ASSERT_EQ(c.count(), std::count(model.begin(), model.end(), true));
      const std::uint32_t end = random() % (model.size() + 1);
      ASSERT_EQ(c.count_before(end), std::count(model.begin(), model.begin() + end, true));
      const auto first = std::find(model.begin(), model.end(), false);
      const auto last = std::find(first, model.end(), true);
      const token_range gap = c.first_gap(static_cast<std::uint32_t>(model.size()));
      ASSERT_EQ(gap, (token_range{static_cast<std::uint32_t>(first - model.begin()),
                                  static_cast<std::uint32_t>(last - model.begin())}));
    }
  }
}

}  // namespace
}  // namespace redline::scheduler
