#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace redline::kernels {

/// The CPUs of this process, and their limits.
struct cpu_share {
  std::uint32_t online = 1;    // CPUs of the machine
  std::uint32_t affinity = 1;  // CPUs in the process's mask
  std::uint32_t quota = 0;     // CPUs of its cgroup, rounded up; 0 for no limit
  /// The tightest limit, at least 1.
  [[nodiscard]] std::uint32_t usable() const;
};
cpu_share cpus_of_this_process();
/// cpus_of_this_process().usable()
std::uint32_t usable_cpus();

/// Threads that share loops with their owner. One thread at a time calls parallel_for and takes part in it. Workers
/// spin for a bounded time between loops, then sleep. A worker that the operating system has not scheduled delays no
/// loop: the caller waits only for workers that have taken an item.
class worker_team {
 public:
  /// threads_count includes the caller; 0 means usable_cpus(). pin: bind worker i to the i-th allowed CPU (the caller
  /// stays unbound).
  explicit worker_team(std::uint32_t threads_count = 0, bool pin = false);
  ~worker_team();
  worker_team(const worker_team&) = delete;
  worker_team& operator=(const worker_team&) = delete;

  /// The number of threads that take part, including the caller. Worker indices are below this.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size()) + 1; }

  /// Calls body(item, worker) once for every item in [0, count), in any order, on any of the threads, and returns when
  /// all are done. Earlier writes are visible to the items, and their writes afterwards to the caller. If a body
  /// throws, items not yet begun are skipped and the first exception is thrown here. Must not be nested.
  template<class Body>
  void parallel_for(std::size_t count, Body&& body) {
    using plain = std::remove_reference_t<Body>;
    run(
        count, [](void* b, std::size_t item, std::uint32_t worker) { (*static_cast<plain*>(b))(item, worker); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// Calls body(begin, end, worker) for ranges that make up [0, count). Each thread has an equal part, which it
  /// processes in order, so that it can prefetch what it will need; a thread that has finished helps the others from
  /// their ends. Otherwise like parallel_for.
  template<class Body>
  void parallel_stretches(std::uint32_t count, Body&& body) {
    share_out(count);
    parallel_for(size(), [&](std::size_t own, std::uint32_t worker) {
      for (std::size_t i = 0; i < size(); ++i) {
        share& from = shares_[(own + i) % size()];
        for (stretch s = from.take(i == 0); s.begin < s.end; s = from.take(i == 0)) body(s.begin, s.end, worker);
      }
    });
  }

 private:
  struct stretch {
    std::size_t begin = 0, end = 0;
  };
  /// The remainder of a thread's part.
  class alignas(64) share {
   public:
    void set(std::uint32_t begin, std::uint32_t end) { left_.store(std::uint64_t{begin} << 32 | end); }
    /// Takes some of it, less toward the end: from the front for the owner, else from the back.
    stretch take(bool is_own);

   private:
    std::atomic<std::uint64_t> left_{0};  // begin << 32 | end
  };
  void share_out(std::uint32_t count);

  using call = void (*)(void* body, std::size_t item, std::uint32_t worker);
  void run(std::size_t count, call fn, void* body);
  void take_items(std::uint32_t worker);
  void work(std::uint32_t worker);
  bool enter(std::uint64_t& seen);
  void leave();
  void keep_exception();

  // One loop at a time. gate_ = generation << 16 | open << 15 | workers inside: a worker enters only while its loop is
  // open, so the fields below are stable while a worker is inside.
  alignas(64) std::atomic<std::uint64_t> gate_{0};
  alignas(64) std::atomic<std::size_t> next_{0};
  std::size_t count_ = 0;
  call fn_ = nullptr;
  void* body_ = nullptr;

  std::mutex mutex_;  // guards sleeping and the exception
  std::condition_variable wake_;
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopping_{false};
  std::exception_ptr thrown_;
  std::vector<std::thread> threads_;
  std::unique_ptr<share[]> shares_;  // [size()]
};

}  // namespace redline::kernels
