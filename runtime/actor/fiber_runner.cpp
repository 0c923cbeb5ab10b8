#include "runtime/actor/fiber_runner.hpp"

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/condition_variable.hpp>
#include <boost/fiber/fiber.hpp>
#include <boost/fiber/mutex.hpp>
#include <boost/fiber/operations.hpp>
#include <boost/fiber/protected_fixedsize_stack.hpp>
#include <chrono>
#include <thread>
#include <unordered_map>
#include <utility>

namespace redline::actor {
namespace {

// Rendering a chat template may need 256 KiB; pages that are never touched cost nothing.
constexpr std::size_t stack_bytes = 1024 * 1024;

/// First come, first served; knows how many actor fibers are ready, which Boost's own round robin does not tell apart
/// from the dispatcher's.
class counting_round_robin final : public boost::fibers::algo::algorithm {
 public:
  explicit counting_round_robin(std::size_t& ready_count) : ready_count_(ready_count) {}

  void awakened(boost::fibers::context* c) noexcept override {
    c->ready_link(queue_);
    if (!c->is_context(boost::fibers::type::dispatcher_context)) ++ready_count_;
  }
  boost::fibers::context* pick_next() noexcept override {
    if (queue_.empty()) return nullptr;
    boost::fibers::context* c = &queue_.front();
    queue_.pop_front();
    if (!c->is_context(boost::fibers::type::dispatcher_context)) --ready_count_;
    return c;
  }
  [[nodiscard]] bool has_ready_fibers() const noexcept override { return !queue_.empty(); }
  // The worker's loop is itself a fiber and never blocks inside Boost, so there is never a time to sleep here.
  void suspend_until(const std::chrono::steady_clock::time_point&) noexcept override { std::this_thread::yield(); }
  void notify() noexcept override {}

 private:
  boost::fibers::scheduler::ready_queue_type queue_;
  std::size_t& ready_count_;
};

// Outlives every runner of the thread: Boost keeps the algorithm until the thread ends.
thread_local std::size_t thread_ready_count = 0;
thread_local bool algorithm_installed = false;

}  // namespace

struct fiber_runner::state {
  struct slot {
    boost::fibers::fiber fiber;
    boost::fibers::condition_variable mail;
    bool woken = false;
    bool done = false;
  };
  std::function<bool(address)> handle_one;
  std::function<bool(address)> alive;
  boost::fibers::mutex mutex;
  std::unordered_map<address, std::shared_ptr<slot>> slots;
  bool ending = false;

  void serve(address who, const std::shared_ptr<slot>& mine) {
    for (;;) {
      {
        std::unique_lock lock(mutex);
        mine->mail.wait(lock, [&] { return mine->woken || ending; });
        mine->woken = false;
      }
      while (!ending && handle_one(who)) boost::this_fiber::yield();
      if (ending || !alive(who)) break;
    }
    mine->done = true;
  }
};

fiber_runner::fiber_runner(std::function<bool(address)> handle_one, std::function<bool(address)> alive)
    : state_(std::make_unique<state>()) {
  state_->handle_one = std::move(handle_one);
  state_->alive = std::move(alive);
  if (!algorithm_installed) {
    boost::fibers::use_scheduling_algorithm<counting_round_robin>(thread_ready_count);
    algorithm_installed = true;
  }
}

fiber_runner::~fiber_runner() { end_all(); }

void fiber_runner::adopt(address who) {
  auto& slot = state_->slots[who];
  // A restarted actor keeps its fiber when that has not ended yet.
  if (slot && !slot->done) return;
  if (slot && slot->fiber.joinable()) slot->fiber.detach();
  slot = std::make_shared<state::slot>();
  auto mine = slot;
  slot->fiber = boost::fibers::fiber(std::allocator_arg, boost::fibers::protected_fixedsize_stack(stack_bytes),
                                     [s = state_.get(), who, mine] { s->serve(who, mine); });
}

void fiber_runner::wake(address who) {
  const auto it = state_->slots.find(who);
  if (it == state_->slots.end()) return;
  it->second->woken = true;
  it->second->mail.notify_one();
}

void fiber_runner::yield() { boost::this_fiber::yield(); }

bool fiber_runner::run_until_blocked() {
  bool any = false;
  // When this fiber is the only one left, the count is zero: it is running, not ready.
  while (thread_ready_count > 0) {
    any = true;
    boost::this_fiber::yield();
  }
  if (any) {
    std::erase_if(state_->slots, [](auto& entry) {
      if (!entry.second->done) return false;
      if (entry.second->fiber.joinable()) entry.second->fiber.join();
      return true;
    });
  }
  return any;
}

void fiber_runner::end_all() {
  state_->ending = true;
  for (auto& [who, slot] : state_->slots) slot->mail.notify_all();
  for (auto& [who, slot] : state_->slots) {
    if (slot->fiber.joinable()) slot->fiber.join();
  }
  state_->slots.clear();
}

}  // namespace redline::actor
