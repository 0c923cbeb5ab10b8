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

/// What a worker last said of its work. All that is not known is 0.
struct worker_load {
  bool takes_work = false;        // it is up, and not about to leave
  std::uint32_t running = 0;      // answers in computation
  std::uint32_t waiting = 0;      // answers that wait for that
  std::uint32_t running_max = 1;  // places for both
  std::uint32_t waiting_max = 0;
  std::uint64_t pending_rows = 0;  // that answers have yet to compute before they go on
  double row_us = 0;               // a row of a prompt
  double pass_us = 0;              // a pass
};

/// What a worker said of the beginnings of texts that it keeps, by prefix_key.
struct kept_change {
  bool is_all = false;  // `added` is everything; else it has changed so
  std::span<const std::uint64_t> added;
  std::span<const std::uint64_t> dropped;
};

/// An answer that wants a worker.
struct placement_question {
  std::uint64_t affinity = 0;  // answers of one number belong together; 0: none
  std::uint32_t prompt_tokens = 0;
  std::span<const std::uint64_t> prefixes;    // keys of the prompt's beginnings of 1, 2, 3 ... blocks
  bool needs_room = false;                    // else a full worker is chosen where all are full, and says so
  std::uint32_t random = 0;                   // decides between equals
  std::function<bool(worker_number)> may_be;  // empty: any may
};

/// Which worker of a pool takes an answer: the one that is predicted to begin soonest, of five that are looked at:
/// where answers of the same affinity went, two drawn from those that keep the longest beginning of the prompt, and two
/// from all ("The Power of Two Choices in Randomized Load Balancing", Mitzenmacher 2001): gateways which know the same
/// do not all choose the same. Predicted is the work ahead of it, as reported and as placed since, and
/// the prompt's rows that are not kept there: by what the worker says, and by what was placed there so lately that it
/// could not say it yet. Pure: no clock, no randomness, no messages.
class placement {
 public:
  struct limits {
    std::size_t affinities_max = 65536;
    std::size_t prefixes_max = 65536;  // that were placed
    std::size_t kept_max = 1024;       // that one worker is believed to keep
    std::uint32_t placed_learns = 16;  // what was placed and is not said after so many times was not kept
  };
  placement();
  explicit placement(limits bounds) : limits_(bounds) {}

  /// A worker's report. What was placed there before it counts as contained in it.
  void note(worker_number worker, const worker_load& load);
  /// What it keeps.
  void learn(worker_number worker, const kept_change& change);
  void remove(worker_number worker);
  /// Null: no worker takes work. The choice is remembered: by affinity, prefixes, and as load until the next report.
  std::optional<worker_number> choose(const placement_question& question);
  /// Microseconds until a worker would begin to decode; for tests and simulations.
  [[nodiscard]] double predict_us(worker_number worker, const placement_question& question) const;
  [[nodiscard]] std::size_t size() const { return workers_.size(); }

 private:
  struct worker {
    worker_load load;
    std::uint32_t placed = 0;  // answers since the last report,
    double placed_rows = 0;    // and their prompts' rows
    std::unordered_set<std::uint64_t> kept;
    std::uint32_t learned = 0;  // so many times
  };
  struct placed_prefix {
    worker_number worker = 0;
    std::uint32_t learned = 0;  // how often it had said what it keeps by then
  };

  [[nodiscard]] bool is_candidate(worker_number number, const placement_question& question) const;
  void keep(worker_number number, worker& w, std::uint64_t key);
  void drop(worker_number number, worker& w, std::uint64_t key);
  /// Whether this worker has this beginning.
  [[nodiscard]] bool keeps(worker_number worker, std::uint64_t key) const;
  [[nodiscard]] std::vector<worker_number> holders_of(std::uint64_t key) const;
  [[nodiscard]] std::uint32_t known_tokens(worker_number worker, const placement_question& question) const;
  void remember(worker_number worker, const placement_question& question);

  limits limits_;
  std::map<worker_number, worker> workers_;
  std::unordered_map<std::uint64_t, worker_number> affinities_;
  std::deque<std::uint64_t> affinity_order_;                            // the longest known first
  std::unordered_map<std::uint64_t, std::vector<worker_number>> kept_;  // who says so
  std::unordered_map<std::uint64_t, placed_prefix> placed_;             // where it was placed last
  std::deque<std::uint64_t> placed_order_;
};

}  // namespace redline::scheduler
