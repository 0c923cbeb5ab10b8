#include "kernels/worker_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace redline::kernels {
namespace {

TEST(worker_team, runs_every_item_exactly_once_on_known_workers) {
  for (const std::uint32_t threads : {1, 2, 3, 8}) {
    worker_team team(threads);
    ASSERT_EQ(team.size(), threads);
    for (const std::size_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(count);
      std::atomic<bool> known{true};
      team.parallel_for(count, [&](std::size_t item, std::uint32_t worker) {
        ++hits[item];
        if (worker >= threads) known = false;
      });
      for (const auto& h : hits) ASSERT_EQ(h, 1);
      ASSERT_TRUE(known);
    }
  }
}

TEST(worker_team, stretches_cover_every_item_once_and_follow_each_other) {
  for (const std::uint32_t threads : {1, 2, 3, 8}) {
    worker_team team(threads);
    for (const std::uint32_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> hits(count);
      std::vector<std::vector<std::size_t>> begins(threads);
      team.parallel_stretches(count, [&](std::size_t begin, std::size_t end, std::uint32_t worker) {
        ASSERT_LT(begin, end);
        ASSERT_LE(end, count);
        for (std::size_t i = begin; i < end; ++i) ++hits[i];
        begins[worker].push_back(begin);
      });
      for (const auto& h : hits) ASSERT_EQ(h, 1);
      if (threads > 1) continue;
      EXPECT_TRUE(std::ranges::is_sorted(begins[0])) << "one thread goes through everything in order";
    }
  }
}

TEST(worker_team, a_thread_that_has_finished_helps_the_others) {
  worker_team team(2);
  std::atomic<int> begun{0};
  std::atomic<std::size_t> done{0};
  // One thread stays in its first item range until everything else is done, which is more than the other's own half.
  team.parallel_stretches(100, [&](std::size_t begin, std::size_t end, std::uint32_t) {
    if (begun.fetch_add(1) == 0) {
      while (done.load() + (end - begin) < 100) std::this_thread::yield();
    }
    done += end - begin;
  });
  EXPECT_EQ(done, 100U);
}

TEST(worker_team, shows_each_loop_what_the_one_before_wrote) {
  worker_team team(3);
  // Plain memory, read by other items than wrote it, so that a missing fence is a race for the thread sanitizer. There
  // are two buffers, so that items of one loop share nothing.
  constexpr std::uint64_t size = 64;
  constexpr std::uint64_t rounds = 2000;
  std::vector<std::uint64_t> now(size);
  std::vector<std::uint64_t> next(size);
  std::iota(now.begin(), now.end(), std::uint64_t{0});
  for (std::uint64_t round = 0; round < rounds; ++round) {
    team.parallel_for(size, [&](std::size_t i, std::uint32_t) { next[i] = now[(i + 1) % size] + size; });
    std::swap(now, next);
  }
  for (std::uint64_t i = 0; i < size; ++i) ASSERT_EQ(now[i], (i + rounds) % size + rounds * size);
}

TEST(worker_team, wakes_workers_that_went_to_sleep) {
  worker_team team(2);
  std::atomic<int> by_others{0};
  for (int round = 0; round < 20 && by_others == 0; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    team.parallel_for(200, [&](std::size_t, std::uint32_t worker) {
      if (worker != 0) ++by_others;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
  }
  EXPECT_GT(by_others, 0);
}

TEST(worker_team, throws_the_first_exception_in_the_caller_and_stays_usable) {
  for (const std::uint32_t threads : {1, 4}) {
    worker_team team(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(team.parallel_for(100,
                                     [](std::size_t item, std::uint32_t) {
                                       if (item % 10 == 3) throw std::runtime_error("item");
                                     }),
                   std::runtime_error);
      std::atomic<int> count{0};
      team.parallel_for(10, [&](std::size_t, std::uint32_t) { ++count; });
      ASSERT_EQ(count, 10);
    }
  }
}

TEST(worker_team, starts_and_stops_without_work) {
  for (int i = 0; i < 50; ++i) worker_team team(1 + i % 5, i % 2 == 0);
  EXPECT_GE(usable_cpus(), 1U);
  EXPECT_EQ(worker_team().size(), usable_cpus());
}

}  // namespace
}  // namespace redline::kernels
