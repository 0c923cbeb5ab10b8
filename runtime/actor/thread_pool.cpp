#include "runtime/actor/thread_pool.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/actor/job_fibers.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/tenant_share.hpp"

namespace redline::actor {
namespace {

// Bytes of a tenant's turn: many small inputs, or a part of a large one.
constexpr std::size_t turn_bytes = 64U << 10;
// Niceness of a thread for large jobs: it gets the CPU time that others leave, or else a tenth of a core.
constexpr int niceness = 10;
// Limits for one thread; each job has a stack, and its input in memory. Beyond large_at_once_max tenants get one job
// each.
constexpr std::size_t large_at_once_max = 8;
constexpr std::size_t large_of_others_max = 32;

void tell_owner(link& wire, const pool_job& job) {
  const frame f{envelope{.to = job.owner, .id = job_done::id}, encode(job_done{job.ticket})};
  for (int tries = 0; tries < 1000; ++tries) {
    if (wire.send(f)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  log_line(log_level::error, "thread pool", "cannot reach " + to_string(job.owner) + " to report that its job is done");
}

}  // namespace

result<void> job_queue::push(pool_job job) {
  const auto known = by_tenant_.find(job.tenant);
  const bool is_new = known == by_tenant_.end();
  const std::size_t own_bytes = is_new ? 0 : known->second->bytes;
  const std::size_t own_jobs = is_new ? 0 : known->second->jobs.size();
  if (jobs_count_ >= limits_.jobs_max || bytes_ + job.bytes > limits_.bytes_max) {
    return failure{errc::queue_full, std::to_string(jobs_count_) + " requests with " + std::to_string(bytes_) +
                                         " bytes are already waiting to be read"};
  }
  if (own_jobs >= part_of_one(limits_.jobs_max, 2) || own_bytes + job.bytes > part_of_one(limits_.bytes_max, 2)) {
    return failure{errc::queue_full, std::to_string(own_jobs) + " of your requests with " + std::to_string(own_bytes) +
                                         " bytes are already waiting to be read"};
  }
  const auto of = is_new ? lines_.insert(lines_.end(), line{.tenant = job.tenant}) : known->second;
  if (is_new) by_tenant_.emplace(job.tenant, of);
  ++jobs_count_;
  bytes_ += job.bytes;
  of->bytes += job.bytes;
  of->jobs.push_back(std::move(job));
  return {};
}

void job_queue::note_gone(std::list<line>::iterator of, std::size_t bytes) {
  --jobs_count_;
  bytes_ -= bytes;
  of->bytes -= bytes;
  if (!of->jobs.empty()) return;
  by_tenant_.erase(of->tenant);
  lines_.erase(of);
}

std::optional<pool_job> job_queue::pop(const std::function<bool(tenant_id)>& may_begin) {
  if (std::none_of(lines_.begin(), lines_.end(), [&](const line& l) { return may_begin(l.tenant); })) {
    return std::nullopt;
  }
  for (;;) {
    line& next = lines_.front();
    if (may_begin(next.tenant)) {
      if (next.deficit >= next.jobs.front().bytes) break;
      next.deficit += turn_bytes;
    }
    lines_.splice(lines_.end(), lines_, lines_.begin());
  }
  line& first = lines_.front();
  pool_job job = std::move(first.jobs.front());
  first.jobs.pop_front();
  first.deficit -= job.bytes;
  note_gone(lines_.begin(), job.bytes);
  return job;
}

bool job_queue::erase(address owner, std::uint64_t ticket) {
  for (auto of = lines_.begin(); of != lines_.end(); ++of) {
    const auto at = std::find_if(of->jobs.begin(), of->jobs.end(),
                                 [&](const pool_job& j) { return j.owner == owner && j.ticket == ticket; });
    if (at == of->jobs.end()) continue;
    const std::size_t bytes = at->bytes;
    of->jobs.erase(at);
    note_gone(of, bytes);
    return true;
  }
  return false;
}

thread_pool::thread_pool(const options& how, const std::function<std::unique_ptr<link>()>& make_link)
    : small_bytes_max_(how.small_bytes_max), small_(how.waiting), large_(how.waiting) {
  for (unsigned i = 0; i < how.small_threads; ++i) {
    threads_.emplace_back([this, wire = make_link()] {
      pthread_setname_np(pthread_self(), "redline-read");
      do_small(*wire);
    });
  }
  for (unsigned i = 0; i < how.large_threads; ++i) {
    threads_.emplace_back([this, wire = make_link()] {
      pthread_setname_np(pthread_self(), "redline-bulk");
      // On Linux niceness is per thread. If the call fails, large jobs merely run at normal priority.
      (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness);
      do_large(*wire);
    });
  }
}

void thread_pool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  small_.has_job.notify_all();
  large_.has_job.notify_all();
  for (auto& t : threads_) t.join();
  threads_.clear();
}

std::shared_ptr<const thread_pool::begun> thread_pool::take(lane& from, std::size_t active_count) {
  std::unique_lock lock(mutex_);
  if (active_count == 0) from.has_job.wait(lock, [&] { return stopping_ || from.jobs.size() > 0; });
  if (stopping_) return nullptr;
  auto job = from.jobs.pop([&](tenant_id tenant) {
    return active_count < large_at_once_max || (active_count < large_of_others_max && !from.running.contains(tenant));
  });
  if (!job) return nullptr;
  auto one = std::make_shared<const begun>(begun{std::move(*job)});
  ++from.running[one->job.tenant];
  running_.push_back(one);
  return one;
}

void thread_pool::note_end(lane& from, const std::shared_ptr<const begun>& one) {
  const std::lock_guard lock(mutex_);
  const auto of = from.running.find(one->job.tenant);
  if (--of->second == 0) from.running.erase(of);
  std::erase(running_, one);
}

void thread_pool::do_small(link& wire) {
  while (const auto one = take(small_, 0)) {
    {
      const job_fibers::cancel_scope scope(*one->cancelled);
      try {
        one->job.run();
      } catch (const job_cancelled&) {
        // ended as requested
      }
    }
    note_end(small_, one);
    tell_owner(wire, one->job);
  }
}

void thread_pool::do_large(link& wire) {
  job_fibers jobs;
  for (;;) {
    while (const auto one = take(large_, jobs.active_count())) {
      const auto work = [this, &wire, one] {
        try {
          one->job.run();
        } catch (const job_cancelled&) {
          // ended as requested
        }
        note_end(large_, one);
        tell_owner(wire, one->job);
      };
      jobs.start(work, one->job.tenant.value, one->cancelled);
    }
    if (jobs.active_count() > 0) {
      jobs.run_turns();
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

result<void> thread_pool::submit(pool_job job) {
  lane& to = job.bytes <= small_bytes_max_ ? small_ : large_;
  const std::lock_guard lock(mutex_);
  REDLINE_TRY(to.jobs.push(std::move(job)));
  to.has_job.notify_one();
  return {};
}

void thread_pool::cancel(address owner, std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (small_.jobs.erase(owner, ticket) || large_.jobs.erase(owner, ticket)) return;
  for (const auto& one : running_) {
    if (one->job.owner == owner && one->job.ticket == ticket) one->cancelled->store(true, std::memory_order_relaxed);
  }
}

std::size_t thread_pool::waiting_count() const {
  const std::lock_guard lock(mutex_);
  return small_.jobs.size() + large_.jobs.size();
}

}  // namespace redline::actor
