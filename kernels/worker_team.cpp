#include "kernels/worker_team.hpp"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

namespace redline::kernels {
namespace {

constexpr std::uint64_t open_bit = 1U << 15;
constexpr std::uint64_t inside_mask = open_bit - 1;
constexpr std::uint64_t generation_one = 1U << 16;

/// Rounds of `pause` before sleeping: some tens of microseconds, longer than the gaps inside a forward pass and short
/// against a time slice that another process could have used.
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

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream out;
  if (in) out << in.rdbuf();
  return out.str();
}

/// CPUs granted by one group's directory, 0 for no limit.
std::uint32_t quota_of(const std::string& directory, bool version2) {
  double quota = 0;
  double period = 0;
  if (version2) {
    std::istringstream text(read_text(directory + "/cpu.max"));  // "max 100000" or "150000 100000"
    if (!(text >> quota >> period)) return 0;
  } else {
    std::istringstream a(read_text(directory + "/cpu.cfs_quota_us"));
    std::istringstream b(read_text(directory + "/cpu.cfs_period_us"));
    if (!(a >> quota) || !(b >> period)) return 0;
  }
  if (!(quota > 0) || !(period > 0)) return 0;
  return static_cast<std::uint32_t>(std::clamp((quota + period - 1) / period, 1.0, 65535.0));
}

void tighten(std::uint32_t& limit, std::uint32_t other) {
  if (other != 0 && (limit == 0 || other < limit)) limit = other;
}

/// Every group from `path` up to the root counts: a parent may be the tight one. Inside a container the path may not
/// exist below the mount; its root then does.
std::uint32_t quota_along(const std::string& mount, std::string path, bool version2) {
  std::uint32_t limit = 0;
  while (true) {
    tighten(limit, quota_of(mount + path, version2));
    const auto slash = path.find_last_of('/');
    if (path.empty() || slash == std::string::npos) return limit;
    path.resize(slash);
  }
}

}  // namespace

std::uint32_t cgroup_cpu_quota(const std::string& proc_self_cgroup, const std::string& root) {
  std::uint32_t limit = 0;
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b" or "4:cpu,cpuacct:/a/b"
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers == ",,") {
      tighten(limit, quota_along(root, path, true));
      tighten(limit, quota_along(root + "/unified", path, true));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      tighten(limit, quota_along(root + "/cpu", path, false));
      tighten(limit, quota_along(root + "/cpu,cpuacct", path, false));
    }
  }
  return limit;
}

std::uint32_t usable_cpus() {
  auto cpus = static_cast<std::uint32_t>(allowed_cpus().size());
  if (cpus == 0) cpus = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t quota = cgroup_cpu_quota(read_text("/proc/self/cgroup"), "/sys/fs/cgroup");
  return quota == 0 ? cpus : std::min(cpus, quota);
}

worker_team::worker_team(std::uint32_t threads_count, bool pin) {
  if (threads_count == 0) threads_count = usable_cpus();
  threads_count = std::min<std::uint32_t>(threads_count, inside_mask);
  const std::vector<int> cpus = pin ? allowed_cpus() : std::vector<int>{};
  threads_.reserve(threads_count - 1);
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

void worker_team::run(std::size_t count, call fn, void* body) {
  if (count == 0) return;
  if (count == 1 || threads_.empty()) {  // nothing to share: no wake-up, no waiting
    for (std::size_t item = 0; item < count; ++item) fn(body, item, 0);
    return;
  }
  count_ = count;
  fn_ = fn;
  body_ = body;
  next_.store(0, std::memory_order_relaxed);
  gate_.fetch_add(generation_one | open_bit);
  if (sleepers_.load() != 0) {
    // Taking the lock closes the window between a worker's last look at the gate and its sleep.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  take_items(0);
  gate_.fetch_and(~open_bit);
  for (int round = 0; (gate_.load(std::memory_order_acquire) & inside_mask) != 0; ++round) {
    if (round < spin_rounds) {
      _mm_pause();
    } else {
      std::this_thread::yield();  // a worker inside an item lost its CPU: give it ours
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

/// Joins the open loop unless this worker has seen it already.
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
    for (int round = 0; round < spin_rounds && !has_work(); ++round) _mm_pause();
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
