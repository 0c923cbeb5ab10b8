#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "runtime/actor/actor.hpp"
#include "runtime/actor/thread_pool.hpp"

namespace redline::actor {

/// The jobs that an actor has given to a thread pool. The actor accepts job_done and passes it to `on`. If it dies,
/// running jobs finish but nothing receives their results, so they must not refer to the actor.
class offload {
 public:
  /// pool: null in tests without other threads: jobs then run at once and are still reported by a message.
  offload(actor_context& context, std::shared_ptr<thread_pool> pool)
      : context_(context), pool_(std::move(pool)), next_ticket_(context.env().random()) {}
  offload(const offload&) = delete;
  offload& operator=(const offload&) = delete;
  ~offload() {
    for (const auto& [ticket, then] : waiting_) cancel(ticket);
  }

  /// Runs `job()` on another thread, and then `then(result<value>)` here; a failure says what the job threw. bytes: the
  /// size of its input. Returns the job's ticket, or queue_full.
  template<class Job, class Then>
  result<std::uint64_t> run(tenant_id tenant, std::size_t bytes, Job job, Then then) {
    using value = std::invoke_result_t<Job&>;
    struct shared {
      explicit shared(Job j) : todo(std::move(j)) {}
      std::optional<Job> todo;
      std::optional<result<value>> done;
      std::atomic<bool> is_done{false};  // orders the two threads' accesses to `done`
      void run() noexcept {
        try {
          done.emplace((*todo)());
        } catch (const std::exception& e) {
          done.emplace(failure{errc::internal, e.what()});
        }
        todo.reset();
        is_done.store(true, std::memory_order_release);
      }
      result<value> take() {
        REDLINE_ASSERT(is_done.load(std::memory_order_acquire), "a job is taken after its end was reported");
        return std::move(*done);
      }
    };
    auto both = std::make_shared<shared>(std::move(job));
    const std::uint64_t ticket = next_ticket_++;
    if (pool_) {
      REDLINE_TRY(pool_->submit({context_.self(), ticket, tenant, bytes, [both] { both->run(); }}));
    } else {
      both->run();
      context_.send(context_.self(), job_done{ticket});
    }
    waiting_.emplace(ticket,
                     [both, then = std::make_shared<Then>(std::move(then))]() mutable { (*then)(both->take()); });
    return ticket;
  }

  void on(const job_done& m) {
    const auto at = waiting_.find(m.ticket);
    if (at == waiting_.end()) return;  // dropped, or from before a restart of the actor
    const auto then = std::move(at->second);
    waiting_.erase(at);
    then();
  }

  /// Cancels a job whose result is no longer wanted.
  void drop(std::uint64_t ticket) {
    if (waiting_.erase(ticket) > 0) cancel(ticket);
  }
  [[nodiscard]] bool idle() const { return waiting_.empty(); }
  [[nodiscard]] std::size_t count() const { return waiting_.size(); }

 private:
  void cancel(std::uint64_t ticket) {
    if (pool_) pool_->cancel(context_.self(), ticket);
  }

  actor_context& context_;
  std::shared_ptr<thread_pool> pool_;
  std::unordered_map<std::uint64_t, std::function<void()>> waiting_;
  std::uint64_t next_ticket_;
};

}  // namespace redline::actor
