#include "kernels/worker_team.hpp"

#include <pthread.h>
#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <utility>

#include "kernels/machine/cgroup.hpp"

namespace redline::kernels {
namespace {

constexpr std::uint64_t open_bit = 1U << 15;
constexpr std::uint64_t inside_mask = open_bit - 1;
constexpr std::uint64_t generation_one = 1U << 16;

/// Pauses for some tens of cycles without load on the memory or on the core's other thread.
inline void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");  // `yield` does nothing on most of these CPUs
#endif
}

/// Rounds of `spin_pause` before sleeping: some tens of microseconds, longer than the gaps inside a forward pass and
/// short compared with a time slice that another process could use.
constexpr int spin_rounds = 1500;

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
    }
  }
  return cpus;
}

}  // namespace

std::uint32_t cpu_share::usable() const { return quota == 0 ? affinity : std::min(affinity, quota); }

cpu_share cpus_of_this_process() {
  cpu_share share;
  share.online = std::max(1U, std::thread::hardware_concurrency());
  share.affinity = static_cast<std::uint32_t>(allowed_cpus().size());
  if (share.affinity == 0) share.affinity = share.online;
  share.quota = cgroup_cpu_quota();
  return share;
}

std::uint32_t usable_cpus() { return cpus_of_this_process().usable(); }

worker_team::worker_team(std::uint32_t threads_count, bool pin) {
  if (threads_count == 0) threads_count = usable_cpus();
  threads_count = std::min<std::uint32_t>(threads_count, inside_mask);
  const std::vector<int> cpus = pin ? allowed_cpus() : std::vector<int>{};
  threads_.reserve(threads_count - 1);
  shares_ = std::make_unique<share[]>(threads_count);
  for (std::uint32_t worker = 1; worker < threads_count; ++worker) {
    threads_.emplace_back([this, worker] { work(worker); });
    if (worker < cpus.size()) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cpus[worker], &set);
      pthread_setaffinity_np(threads_.back().native_handle(), sizeof(set), &set);
    }
  }
}

worker_team::~worker_team() {
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

worker_team::stretch worker_team::share::take(bool is_own) {
  std::uint64_t left = left_.load(std::memory_order_relaxed);
  while (true) {
    const std::uint64_t begin = left >> 32, end = left & 0xffffffffU;
    if (begin >= end) return {};
    const std::uint64_t count = (end - begin + 7) / 8;
    const std::uint64_t rest = is_own ? (begin + count) << 32 | end : begin << 32 | (end - count);
    if (!left_.compare_exchange_weak(left, rest, std::memory_order_relaxed)) continue;
    return is_own ? stretch{begin, begin + count} : stretch{end - count, end};
  }
}

void worker_team::share_out(std::uint32_t count) {
  const std::uint64_t all = count;
  for (std::uint32_t i = 0; i < size(); ++i) {
    shares_[i].set(static_cast<std::uint32_t>(all * i / size()), static_cast<std::uint32_t>(all * (i + 1) / size()));
  }
}

void worker_team::run(std::size_t count, call fn, void* body) {
  if (count == 0) return;
  if (count == 1 || threads_.empty()) {  // nothing to share, so no wakeup and no waiting
    for (std::size_t item = 0; item < count; ++item) fn(body, item, 0);
    return;
  }
  count_ = count;
  fn_ = fn;
  body_ = body;
  next_.store(0, std::memory_order_relaxed);
  gate_.fetch_add(generation_one | open_bit);
  if (sleepers_.load() != 0) {
    // Taking the lock closes the window between a worker's last check of the gate and its sleep.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  take_items(0);
  gate_.fetch_and(~open_bit);
  for (int round = 0; (gate_.load(std::memory_order_acquire) & inside_mask) != 0; ++round) {
    if (round < spin_rounds) {
      spin_pause();
    } else {
      std::this_thread::yield();  // a worker with an item lost its CPU: yield this one
    }
  }
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void worker_team::take_items(std::uint32_t worker) {
  try {
    while (true) {
      const std::size_t item = next_.fetch_add(1, std::memory_order_relaxed);
      if (item >= count_) return;
      fn_(body_, item, worker);
    }
  } catch (...) {
    keep_exception();
  }
}

void worker_team::keep_exception() {
  next_.store(count_, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (!thrown_) thrown_ = std::current_exception();
}

/// Joins the open loop unless this worker has already seen it.
bool worker_team::enter(std::uint64_t& seen) {
  std::uint64_t gate = gate_.load(std::memory_order_acquire);
  while ((gate & open_bit) != 0 && gate / generation_one != seen) {
    if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      seen = gate / generation_one;
      return true;
    }
  }
  return false;
}

void worker_team::leave() { gate_.fetch_sub(1, std::memory_order_acq_rel); }

void worker_team::work(std::uint32_t worker) {
  std::uint64_t seen = 0;
  const auto has_work = [&] {
    const std::uint64_t gate = gate_.load();
    return (gate & open_bit) != 0 && gate / generation_one != seen;
  };
  while (!stopping_.load(std::memory_order_relaxed)) {
    for (int round = 0; round < spin_rounds && !has_work(); ++round) spin_pause();
    if (enter(seen)) {
      take_items(worker);
      leave();
      continue;
    }
    if (has_work()) continue;
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1);
    wake_.wait(lock, [&] { return has_work() || stopping_.load(); });
    sleepers_.fetch_sub(1);
  }
}

}  // namespace redline::kernels
