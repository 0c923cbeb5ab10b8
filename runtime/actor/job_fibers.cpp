#include "runtime/actor/job_fibers.hpp"

#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/base/pause_point.hpp"

#ifndef REDLINE_SANITIZED
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/protected_fixedsize_stack.hpp>
#include <chrono>
#endif

namespace redline::actor {
namespace {

thread_local const std::atomic<bool>* scope_cancelled = nullptr;

void check_scope() {
  if (scope_cancelled->load(std::memory_order_relaxed)) throw job_cancelled();
}

}  // namespace

job_fibers::cancel_scope::cancel_scope(const std::atomic<bool>& cancelled) {
  scope_cancelled = &cancelled;
  pause_hook = check_scope;
}

job_fibers::cancel_scope::~cancel_scope() {
  pause_hook = nullptr;
  scope_cancelled = nullptr;
}

#ifdef REDLINE_SANITIZED

job_fibers::job_fibers() = default;
job_fibers::~job_fibers() = default;
void job_fibers::start(std::function<void()> job, std::uint64_t, flag cancelled) {
  static const std::atomic<bool> never{false};
  const cancel_scope scope(cancelled ? *cancelled : never);
  try {
    job();
  } catch (const job_cancelled&) {
  }
}
void job_fibers::run_turns() {}

#else

namespace {

// Rendering a chat template may need 256 KiB; untouched pages cost nothing.
constexpr std::size_t stack_bytes = 1U << 20;
constexpr std::chrono::milliseconds turn{5};

thread_local std::chrono::steady_clock::time_point turn_ends;

}  // namespace

struct job_fibers::member {
  turns& of;
  flag cancelled;
};

thread_local const job_fibers::member* job_fibers::current_ = nullptr;

void job_fibers::wait_for_turn(const member& job) {
  while (job.of.chosen != &job) boost::this_fiber::yield();
  current_ = &job;
  turn_ends = std::chrono::steady_clock::now() + turn;
}

void job_fibers::give_way() {
  const member& job = *current_;
  if (std::chrono::steady_clock::now() >= turn_ends) {
    boost::this_fiber::yield();
    wait_for_turn(job);
  }
  if (job.cancelled && job.cancelled->load(std::memory_order_relaxed)) throw job_cancelled();
}

job_fibers::job_fibers() { pause_hook = give_way; }

job_fibers::~job_fibers() {
  REDLINE_ASSERT(active_ == 0, "fibers end before what runs them");
  pause_hook = nullptr;
}

void job_fibers::start(std::function<void()> job, std::uint64_t group, flag cancelled) {
  ++active_;
  auto& of = groups_[group];
  const std::shared_ptr<const member> me(new member{of, std::move(cancelled)});
  of.members.push_back(me.get());
  boost::fibers::fiber(boost::fibers::launch::post, std::allocator_arg,
                       boost::fibers::protected_fixedsize_stack(stack_bytes),
                       [this, group, me, job = std::move(job)] {
                         wait_for_turn(*me);
                         try {
                           job();
                         } catch (const job_cancelled&) {
                           // ended as requested
                         }
                         std::erase(me->of.members, me.get());
                         me->of.chosen = nullptr;
                         if (me->of.members.empty()) groups_.erase(group);
                         --active_;
                       })
      .detach();
}

// This thread's own fiber takes turns in the same round as those of the jobs.
void job_fibers::run_turns() {
  if (active_ == 0) return;
  for (auto& [group, of] : groups_) {
    of.chosen = of.members.front();
    of.members.pop_front();
    of.members.push_back(of.chosen);
  }
  boost::this_fiber::yield();
}

#endif

}  // namespace redline::actor
