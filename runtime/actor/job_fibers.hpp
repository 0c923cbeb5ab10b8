#pragma once

#include <cstddef>
#include <functional>

namespace redline::actor {

/// Jobs that take turns on one thread: each runs on a fiber (Boost.Fiber, which stays inside job_fibers.cpp), and lets
/// the others go on at a `pause_point` after a few milliseconds. Sanitizers do not follow fiber stacks: in their builds
/// a job runs to its end at once. Used by one thread.
class job_fibers {
 public:
  job_fibers();
  ~job_fibers();
  job_fibers(const job_fibers&) = delete;
  job_fibers& operator=(const job_fibers&) = delete;

  /// job: may not throw.
  void start(std::function<void()> job);
  /// Lets each job have its turn.
  void run_turns();
  /// Jobs that have begun and not ended.
  [[nodiscard]] std::size_t active_count() const { return active_; }

 private:
  std::size_t active_ = 0;
};

}  // namespace redline::actor
