#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/token_chain.hpp"

namespace redline::scheduler {

/// Number of a worker in a pool.
using worker_number = std::uint32_t;

/// What a worker last reported about its work. Unknown values are 0.
struct worker_load {
  bool takes_work = false;        // it is up and not about to leave
  std::uint32_t running = 0;      // answers in computation
  std::uint32_t waiting = 0;      // answers that wait to be computed
  std::uint32_t running_max = 1;  // slots for running answers
  std::uint32_t waiting_max = 0;
  std::uint64_t pending_rows = 0;  // rows to compute before its answers can continue
  double row_us = 0;               // cost of a prompt row
  double pass_us = 0;              // cost of a pass
};

/// A worker's report of the text prefixes that it caches, by prefix_key.
struct kept_change {
  bool is_all = false;  // `added` is the complete set; otherwise a change
  std::span<const std::uint64_t> added;
  std::span<const std::uint64_t> dropped;
};

/// An answer that needs a worker.
struct placement_question {
  std::uint64_t affinity = 0;  // answers with the same number belong together; 0 means none
  std::uint32_t prompt_tokens = 0;
  std::span<const std::uint64_t> prefixes;  // keys of the prompt's first 1, 2, 3 ... blocks
  bool needs_room = false;   // if all workers are full, choose none; otherwise a full worker is chosen and reports it
  std::uint32_t random = 0;  // breaks ties
  std::function<bool(worker_number)> may_be;  // if empty, any worker may be chosen
};

/// Chooses the worker of a pool for an answer: of up to five candidates, the one predicted to begin soonest. The
/// candidates are the worker that got the last answer with the same affinity, two drawn from those with the longest
/// cached prefix, and two drawn from all ("The Power of Two Choices in Randomized Load Balancing", Mitzenmacher 2001):
/// gateways with the same knowledge do not all choose the same worker. The prediction counts the work ahead of the
/// answer, as reported and as placed since, and the prompt's rows that are not cached there. Cached is what the worker
/// reports, and what was placed there too recently to be in a report. Pure: no clock, no randomness, no messages.
class placement {
 public:
  struct limits {
    std::size_t affinities_max = 65536;
    std::size_t prefixes_max = 65536;  // placed prefixes
    std::size_t kept_max = 1024;       // prefixes that one worker is believed to cache
    std::uint32_t placed_learns = 16;  // a placed prefix missing from this many reports is not cached
  };
  placement();
  explicit placement(limits bounds) : limits_(bounds) {}

  /// A worker's report. It is taken to include everything placed there before.
  void note(worker_number worker, const worker_load& load);
  /// The prefixes that a worker caches.
  void learn(worker_number worker, const kept_change& change);
  void remove(worker_number worker);
  /// nullopt if no worker takes work. The choice is remembered by affinity, by prefixes, and as load until the next
  /// report.
  std::optional<worker_number> choose(const placement_question& question);
  /// Microseconds until a worker would begin to decode; for tests and simulations.
  [[nodiscard]] double predict_us(worker_number worker, const placement_question& question) const;
  [[nodiscard]] std::size_t size() const { return workers_.size(); }

 private:
  struct worker {
    worker_load load;
    std::uint32_t placed = 0;  // answers since the last report
    double placed_rows = 0;    // prompt rows of those answers
    std::unordered_set<std::uint64_t> kept;
    std::uint32_t learned = 0;  // number of reports of cached prefixes
  };
  struct placed_prefix {
    worker_number worker = 0;
    std::uint32_t learned = 0;  // the worker's `learned` when the prefix was placed
  };

  [[nodiscard]] bool is_candidate(worker_number number, const placement_question& question) const;
  void keep(worker_number number, worker& w, std::uint64_t key);
  void drop(worker_number number, worker& w, std::uint64_t key);
  /// Whether the worker caches this prefix.
  [[nodiscard]] bool keeps(worker_number worker, std::uint64_t key) const;
  [[nodiscard]] std::vector<worker_number> holders_of(std::uint64_t key) const;
  [[nodiscard]] std::uint32_t known_tokens(worker_number worker, const placement_question& question) const;
  void remember(worker_number worker, const placement_question& question);

  limits limits_;
  std::map<worker_number, worker> workers_;
  std::unordered_map<std::uint64_t, worker_number> affinities_;
  std::deque<std::uint64_t> affinity_order_;                            // oldest first
  std::unordered_map<std::uint64_t, std::vector<worker_number>> kept_;  // workers that report the prefix
  std::unordered_map<std::uint64_t, placed_prefix> placed_;             // the last placement of the prefix
  std::deque<std::uint64_t> placed_order_;
};

}  // namespace redline::scheduler
