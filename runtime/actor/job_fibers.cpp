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

#ifdef REDLINE_SANITIZED

job_fibers::job_fibers() = default;
job_fibers::~job_fibers() = default;
void job_fibers::start(std::function<void()> job) { job(); }
void job_fibers::run_turns() {}

#else

namespace {

// Rendering a chat template may need 256 KiB; pages that are never touched cost nothing.
constexpr std::size_t stack_bytes = 1U << 20;
constexpr std::chrono::milliseconds turn{5};

thread_local std::chrono::steady_clock::time_point turn_ends;

void give_way() {
  if (std::chrono::steady_clock::now() < turn_ends) return;
  boost::this_fiber::yield();
  turn_ends = std::chrono::steady_clock::now() + turn;
}

}  // namespace

job_fibers::job_fibers() { pause_hook = give_way; }

job_fibers::~job_fibers() {
  REDLINE_ASSERT(active_ == 0, "fibers end before what runs them");
  pause_hook = nullptr;
}

void job_fibers::start(std::function<void()> job) {
  ++active_;
  boost::fibers::fiber(boost::fibers::launch::post, std::allocator_arg,
                       boost::fibers::protected_fixedsize_stack(stack_bytes),
                       [this, job = std::move(job)] {
                         turn_ends = std::chrono::steady_clock::now() + turn;
                         job();
                         --active_;
                       })
      .detach();
}

// This thread's own fiber is in the same round as the jobs'.
void job_fibers::run_turns() {
  if (active_ > 0) boost::this_fiber::yield();
}

#endif

}  // namespace redline::actor
