#include "runtime/actor/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>

#include "runtime/base/pause_point.hpp"

namespace redline::actor {
namespace {

const address owner = make_address(1, 1, 2);

pool_job job_of(std::uint64_t tenant, std::size_t bytes, std::uint64_t ticket = 0) {
  return {.owner = owner, .ticket = ticket, .tenant = {tenant}, .bytes = bytes, .run = [] {}};
}

TEST(job_queue, lets_tenants_take_turns_by_bytes) {
  job_queue q({});
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(q.push(job_of(1, 1U << 20, 100 + i)));
  for (std::uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(q.push(job_of(2, 1U << 10, 200 + i)));
  std::vector<std::uint64_t> order;
  while (auto job = q.pop()) order.push_back(job->ticket);
  ASSERT_EQ(order.size(), 12U);
  // A megabyte counts as sixteen turns, so the other tenant's eight small jobs come first, though pushed last.
  EXPECT_TRUE(std::all_of(order.begin(), order.begin() + 8, [](auto t) { return t >= 200; }));
  EXPECT_TRUE(std::is_sorted(order.begin(), order.begin() + 8));
  EXPECT_TRUE(std::is_sorted(order.begin() + 8, order.end()));
  EXPECT_EQ(q.bytes(), 0U);
}

TEST(job_queue, gives_two_tenants_with_large_jobs_the_same_share) {
  job_queue q({});
  for (std::uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(q.push(job_of(1, 200'000, i)));
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(q.push(job_of(2, 1'000'000, 100 + i)));
  std::map<bool, std::size_t> taken;
  for (int i = 0; i < 18; ++i) {
    const auto job = q.pop();
    taken[job->ticket >= 100] += job->bytes;
  }
  EXPECT_NEAR(static_cast<double>(taken[true]), static_cast<double>(taken[false]), 1'100'000);
}

TEST(job_queue, is_bounded_in_jobs_and_bytes_and_per_tenant) {
  job_queue q({.bytes_max = 1000, .jobs_max = 6});
  EXPECT_FALSE(q.push(job_of(1, 501))) << "half of the space is for others";
  ASSERT_TRUE(q.push(job_of(1, 500)));
  EXPECT_FALSE(q.push(job_of(1, 1)));
  ASSERT_TRUE(q.push(job_of(2, 300)));
  EXPECT_EQ(q.push(job_of(3, 201)).error().code, errc::queue_full);
  ASSERT_TRUE(q.push(job_of(3, 0)));
  ASSERT_TRUE(q.push(job_of(3, 0)));
  ASSERT_TRUE(q.push(job_of(3, 0)));
  EXPECT_FALSE(q.push(job_of(3, 0))) << "half of the jobs";
  ASSERT_TRUE(q.push(job_of(4, 0)));
  EXPECT_FALSE(q.push(job_of(5, 0)));
  while (q.pop()) {
  }
  EXPECT_TRUE(q.push(job_of(1, 500)));
}

TEST(job_queue, leaves_out_tenants_whose_jobs_may_not_begin) {
  job_queue q({});
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(q.push(job_of(1, 1U << 20, i)));
  ASSERT_TRUE(q.push(job_of(2, 4U << 20, 10)));
  const auto not_first = [](tenant_id t) { return t.value != 1; };
  EXPECT_EQ(q.pop(not_first)->ticket, 10U);
  EXPECT_FALSE(q.pop(not_first));
  EXPECT_EQ(q.size(), 3U);
  EXPECT_EQ(q.pop()->ticket, 0U);
}

TEST(job_queue, forgets_a_job_that_is_erased) {
  job_queue q({});
  ASSERT_TRUE(q.push(job_of(1, 10, 1)));
  ASSERT_TRUE(q.push(job_of(1, 10, 2)));
  EXPECT_FALSE(q.erase(make_address(1, 1, 3), 1));
  EXPECT_TRUE(q.erase(owner, 1));
  EXPECT_FALSE(q.erase(owner, 1));
  EXPECT_EQ(q.pop()->ticket, 2U);
  EXPECT_FALSE(q.pop());
}

/// The reports that owners received from the pool's threads.
class told {
 public:
  void add(std::uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    tickets_.push_back(ticket);
    changed_.notify_all();
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return tickets_.size() >= count; });
  }
  std::vector<std::uint64_t> tickets() {
    const std::lock_guard lock(mutex_);
    return tickets_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> tickets_;
};

class telling_link final : public link {
 public:
  explicit telling_link(told& to) : to_(to) {}
  result<void> send(const frame& f) override {
    to_.add(decode<job_done>(f.body)->ticket);
    return {};
  }
  std::optional<frame> receive() override { return std::nullopt; }
  void wait(microseconds) override {}

 private:
  told& to_;
};

TEST(thread_pool, does_small_jobs_while_a_large_one_goes_on) {
  told t;
  thread_pool pool({}, [&] { return std::make_unique<telling_link>(t); });
  std::promise<void> go_on;
  auto large = job_of(1, 1U << 20, 1);
  large.run = [waits = go_on.get_future().share()] { waits.wait(); };
  ASSERT_TRUE(pool.submit(std::move(large)));
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(pool.submit(job_of(1, 100, 10 + i)));
  ASSERT_TRUE(t.wait_for(5));
  EXPECT_EQ(t.tickets(), (std::vector<std::uint64_t>{10, 11, 12, 13, 14}));
  go_on.set_value();
  ASSERT_TRUE(t.wait_for(6));
  EXPECT_EQ(t.tickets().back(), 1U);
}

#ifndef REDLINE_SANITIZED
TEST(thread_pool, does_large_jobs_by_turns) {
  told t;
  thread_pool pool({}, [&] { return std::make_unique<telling_link>(t); });
  std::atomic<bool> second_has_run{false};
  auto first = job_of(1, 8U << 20, 1);
  first.run = [&] {
    while (!second_has_run) pause_point();
  };
  ASSERT_TRUE(pool.submit(std::move(first)));
  auto second = job_of(1, 1U << 20, 2);
  second.run = [&] { second_has_run = true; };
  ASSERT_TRUE(pool.submit(std::move(second)));
  ASSERT_TRUE(t.wait_for(2));
  EXPECT_EQ(t.tickets(), (std::vector<std::uint64_t>{2, 1}));
}

TEST(thread_pool, begins_a_large_job_of_another_tenant_however_many_are_in_work) {
  told t;
  thread_pool pool({}, [&] { return std::make_unique<telling_link>(t); });
  std::atomic<bool> ends{false};
  std::atomic<int> in_work{0};
  for (std::uint64_t i = 0; i < 12; ++i) {
    auto endless = job_of(1, 1U << 20, i);
    endless.run = [&] {
      ++in_work;
      while (!ends) pause_point();
    };
    ASSERT_TRUE(pool.submit(std::move(endless)));
  }
  for (std::uint64_t tenant = 2; tenant < 5; ++tenant) {
    ASSERT_TRUE(pool.submit(job_of(tenant, 1U << 20, 100 + tenant)));
    ASSERT_TRUE(pool.submit(job_of(tenant, 1U << 20, 200 + tenant)));
  }
  ASSERT_TRUE(t.wait_for(6)) << "of tenants 2, 3 and 4";
  EXPECT_LE(in_work, 8) << "of one tenant";
  ends = true;
  EXPECT_TRUE(t.wait_for(18));
}

TEST(thread_pool, ends_a_job_in_work_that_nobody_waits_for) {
  told t;
  thread_pool pool({}, [&] { return std::make_unique<telling_link>(t); });
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{100}}) {
    std::promise<void> has_begun;
    std::atomic<bool> ends{false};
    std::atomic<bool> was_whole{false};
    auto endless = job_of(1, bytes, bytes);
    endless.run = [&] {
      has_begun.set_value();
      while (!ends) pause_point();
      was_whole = true;
    };
    const auto before = t.tickets().size();
    ASSERT_TRUE(pool.submit(std::move(endless)));
    has_begun.get_future().wait();
    pool.cancel(owner, bytes);
    EXPECT_TRUE(t.wait_for(before + 1));
    ends = true;
    EXPECT_FALSE(was_whole);
  }
}
#endif

TEST(thread_pool, drops_a_job_that_is_cancelled_before_it_began) {
  told t;
  thread_pool pool({}, [&] { return std::make_unique<telling_link>(t); });
  std::promise<void> go_on;
  auto first = job_of(1, 1, 1);
  first.run = [waits = go_on.get_future().share()] { waits.wait(); };
  ASSERT_TRUE(pool.submit(std::move(first)));
  bool ran = false;
  auto second = job_of(1, 1, 2);
  second.run = [&ran] { ran = true; };
  ASSERT_TRUE(pool.submit(std::move(second)));
  ASSERT_TRUE(pool.submit(job_of(1, 1, 3)));
  pool.cancel(owner, 2);
  go_on.set_value();
  ASSERT_TRUE(t.wait_for(2));
  EXPECT_EQ(t.tickets(), (std::vector<std::uint64_t>{1, 3}));
  pool.stop();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace redline::actor
