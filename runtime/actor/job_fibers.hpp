#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>

namespace redline::actor {

/// Thrown by a `pause_point` of a job whose result is no longer wanted.
class job_cancelled final : public std::exception {
 public:
  [[nodiscard]] const char* what() const noexcept override { return "the job was cancelled"; }
};

/// Jobs that take turns on one thread: each runs on a fiber (Boost.Fiber, used only in job_fibers.cpp) and yields at a
/// `pause_point` after a few milliseconds. Each group gets the same share, however many jobs it has: one job per group
/// runs in a round. Sanitizers do not follow fiber stacks, so in their builds a job runs to completion at once. Used by
/// one thread.
class job_fibers {
 public:
  using flag = std::shared_ptr<const std::atomic<bool>>;

  job_fibers();
  ~job_fibers();
  job_fibers(const job_fibers&) = delete;
  job_fibers& operator=(const job_fibers&) = delete;

  /// job: may throw only job_cancelled, which its pause points do once `cancelled` is set. A null flag means never.
  void start(std::function<void()> job, std::uint64_t group = 0, flag cancelled = nullptr);
  /// Runs one round.
  void run_turns();
  /// The number of jobs that have begun and not ended.
  [[nodiscard]] std::size_t active_count() const { return active_; }

  /// For a thread without fibers: in this scope, the pause points of its one job throw as above.
  class cancel_scope {
   public:
    explicit cancel_scope(const std::atomic<bool>& cancelled);
    ~cancel_scope();
    cancel_scope(const cancel_scope&) = delete;
    cancel_scope& operator=(const cancel_scope&) = delete;
  };

 private:
  struct member;
  struct turns {
    std::deque<const member*> members;  // the next turn first
    const member* chosen = nullptr;     // for this round
  };
  static void wait_for_turn(const member& job);
  static void give_way();
  static thread_local const member* current_;

  std::map<std::uint64_t, turns> groups_;
  std::size_t active_ = 0;
};

}  // namespace redline::actor
