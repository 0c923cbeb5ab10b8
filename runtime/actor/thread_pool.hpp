#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/actor/link.hpp"
#include "runtime/actor/protocol.hpp"
#include "runtime/base/ids.hpp"

namespace redline::actor {

/// Reports that a job of this actor is done. The actor stores the result, see `offload`.
struct job_done {
  static constexpr message_id id{0x0106};
  static constexpr std::string_view name = "job_done";
  static constexpr bool control = true;

  std::uint64_t ticket = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.ticket); }
};

/// Work on a client's input that takes longer than an actor's handler may.
struct pool_job {
  address owner;             // receives job_done
  std::uint64_t ticket = 0;  // the owner's number for it
  tenant_id tenant;
  std::size_t bytes = 0;      // size of the input, which the work grows with
  std::function<void()> run;  // may throw job_cancelled
};

/// A bounded queue of jobs that wait for a thread. Tenants take turns by bytes (deficit round robin: Shreedhar and
/// Varghese, SIGCOMM 1995), so that a tenant with much work does not delay one with little; a tenant's own jobs keep
/// their order.
class job_queue {
 public:
  struct limits {
    std::size_t bytes_max = 64U << 20;  // input bytes; half as many per tenant
    std::size_t jobs_max = 4096;        // half as many per tenant
  };
  explicit job_queue(limits at_most) : limits_(at_most) {}

  /// Returns queue_full if the job does not fit; it was not taken then.
  result<void> push(pool_job job);
  std::optional<pool_job> pop() {
    return pop([](tenant_id) { return true; });
  }
  /// Returns the next job of a tenant for which `may_begin` is true.
  std::optional<pool_job> pop(const std::function<bool(tenant_id)>& may_begin);
  /// Returns false if no such job waits.
  bool erase(address owner, std::uint64_t ticket);

  [[nodiscard]] std::size_t size() const { return jobs_count_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct line {
    tenant_id tenant;
    std::deque<pool_job> jobs;
    std::size_t bytes = 0;
    std::size_t deficit = 0;  // bytes that the tenant may still take in its turn
  };
  void note_gone(std::list<line>::iterator of, std::size_t bytes);

  limits limits_;
  std::list<line> lines_;  // tenants with jobs; the first has its turn
  std::unordered_map<tenant_id, std::list<line>::iterator> by_tenant_;
  std::size_t jobs_count_ = 0;
  std::size_t bytes_ = 0;
};

/// Threads for work that grows with client input: parsing, templates, tokenization, grammar compilation. Small jobs
/// have their own threads, so that they never wait for a large one. Threads for large jobs run at a lower priority than
/// the rest of the process and interleave several jobs, so that an enormous one does not delay the others. Tenants have
/// equal shares, and a tenant without a running large job can always begin one. Thread-safe.
class thread_pool {
 public:
  struct options {
    unsigned small_threads = 1;
    unsigned large_threads = 1;
    std::size_t small_bytes_max = 64U << 10;
    job_queue::limits waiting;  // for each of the two kinds
  };
  /// make_link: makes the link by which a thread notifies owners that their jobs are done.
  thread_pool(const options& how, const std::function<std::unique_ptr<link>()>& make_link);
  ~thread_pool() { stop(); }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  /// Returns queue_full if too much waits. The job's function may throw only job_cancelled.
  result<void> submit(pool_job job);
  /// Drops a job that has not begun, without notifying its owner; a running job ends at its next pause point.
  void cancel(address owner, std::uint64_t ticket);
  [[nodiscard]] std::size_t waiting_count() const;
  /// Waits for running jobs and drops waiting ones. Must not be called by a job.
  void stop();

 private:
  struct lane {
    explicit lane(job_queue::limits at_most) : jobs(at_most) {}
    job_queue jobs;
    std::condition_variable has_job;
    std::unordered_map<tenant_id, std::size_t>
        running;  // number of jobs that have begun, by tenant; tenants with none are absent
  };
  struct begun {
    pool_job job;
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  void do_small(link& wire);
  void do_large(link& wire);
  /// Takes a job that may begin on a thread with active_count running jobs, or null. Waits for one if active_count is
  /// 0; null then means that the pool stops.
  std::shared_ptr<const begun> take(lane& from, std::size_t active_count);
  void note_end(lane& from, const std::shared_ptr<const begun>& one);

  std::size_t small_bytes_max_;
  mutable std::mutex mutex_;
  lane small_;
  lane large_;
  std::vector<std::shared_ptr<const begun>> running_;  // only a few
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace redline::actor
