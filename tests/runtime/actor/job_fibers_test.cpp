#include "runtime/actor/job_fibers.hpp"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/base/pause_point.hpp"

namespace redline::actor {
namespace {

#ifndef REDLINE_SANITIZED

TEST(job_fibers, let_jobs_take_turns_at_their_pause_points) {
  job_fibers jobs;
  bool second_has_run = false;
  int turns = 0;
  jobs.start([&] {
    while (!second_has_run) pause_point();  // would never end if it ran alone
  });
  jobs.start([&] { second_has_run = true; });
  EXPECT_EQ(jobs.active_count(), 2U);
  while (jobs.active_count() > 0) {
    jobs.run_turns();
    ++turns;
  }
  EXPECT_TRUE(second_has_run);
  EXPECT_GE(turns, 2);
}

TEST(job_fibers, give_a_job_a_few_milliseconds_at_a_time) {
  job_fibers jobs;
  const auto began = std::chrono::steady_clock::now();
  bool ends = false;
  jobs.start([&] {
    while (!ends) pause_point();
  });
  jobs.run_turns();
  EXPECT_GE(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(4));
  ends = true;
  while (jobs.active_count() > 0) jobs.run_turns();
}

TEST(job_fibers, give_groups_the_same_share_however_many_jobs_they_have) {
  job_fibers jobs;
  bool ends = false;
  int round = 0;
  int turns[5] = {};
  int last[5] = {};
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t group = i < 4 ? 1 : 2;
    const auto count = [&, i] {
      while (!ends) {
        if (last[i] != round) ++turns[i];
        last[i] = round;
        pause_point();
      }
    };
    jobs.start(count, group);
  }
  for (round = 1; round <= 20; ++round) jobs.run_turns();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(turns[i], 5) << i;
  EXPECT_EQ(turns[4], 20);
  ends = true;
  while (jobs.active_count() > 0) jobs.run_turns();
}

TEST(job_fibers, end_a_cancelled_job_at_its_next_pause_point) {
  job_fibers jobs;
  const auto cancelled = std::make_shared<std::atomic<bool>>(false);
  bool was_whole = false;
  bool ends = false;
  const auto endless = [&] {
    while (!ends) pause_point();
    was_whole = true;
  };
  jobs.start(endless, 1, cancelled);
  jobs.run_turns();
  EXPECT_EQ(jobs.active_count(), 1U);
  *cancelled = true;
  jobs.run_turns();
  EXPECT_EQ(jobs.active_count(), 0U);
  EXPECT_FALSE(was_whole);
  ends = true;
}

#endif

TEST(job_fibers, run_a_job_without_pause_points_to_its_end) {
  job_fibers jobs;
  int ran = 0;
  for (int i = 0; i < 20; ++i) jobs.start([&] { ++ran; });
  while (jobs.active_count() > 0) jobs.run_turns();
  EXPECT_EQ(ran, 20);
}

}  // namespace
}  // namespace redline::actor
