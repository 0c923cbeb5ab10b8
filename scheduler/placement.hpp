#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/ids.hpp"

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
  double row_us = 0;   // a row's share of a pass, as measured
  double pass_us = 0;  // a pass
};

/// An answer that wants a worker.
struct placement_question {
  std::uint64_t affinity = 0;  // answers of one number belong together; 0: none
  std::uint32_t prompt_tokens = 0;
  std::span<const std::uint64_t> prefixes;    // hashes of the prompt's beginnings; see hash_prefixes
  bool needs_room = false;                    // else a full worker is chosen where all are full, and says so
  std::uint32_t random = 0;                   // decides between equals
  std::function<bool(worker_number)> may_be;  // empty: any may
};

/// Hashes of the prompt's beginnings of 1, 2, 4, 8 ... blocks of this many tokens, and of all whole blocks.
inline constexpr std::uint32_t prefix_block_tokens = 256;
std::vector<std::uint64_t> hash_prefixes(tenant_id scope, std::span<const token> prompt);

/// Which worker of a pool takes an answer: the one that is predicted to begin soonest, of four that are looked at:
/// where answers of the same affinity went, where the longest beginning of the prompt was computed, and two drawn at
/// random
/// ("The Power of Two Choices in Randomized Load Balancing", Mitzenmacher 2001), so that gateways which know the same
/// do not all choose the same. Predicted is the work ahead of it, as reported and as placed since, and the prompt's
/// rows that are not known there. Pure: no clock, no randomness, no messages.
class placement {
 public:
  struct limits {
    std::size_t affinities_max = 65536;
    std::size_t prefixes_max = 65536;
  };
  placement();
  explicit placement(limits bounds) : limits_(bounds) {}

  /// A worker's report. What was placed there before it counts as contained in it.
  void note(worker_number worker, const worker_load& load);
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
  };
  struct kept_prefix {
    worker_number worker = 0;
    std::uint32_t tokens = 0;
  };

  [[nodiscard]] bool is_candidate(worker_number number, const placement_question& question) const;
  [[nodiscard]] std::uint32_t known_tokens(worker_number worker, const placement_question& question) const;
  void remember(worker_number worker, const placement_question& question);

  limits limits_;
  std::map<worker_number, worker> workers_;
  std::unordered_map<std::uint64_t, worker_number> affinities_;
  std::deque<std::uint64_t> affinity_order_;  // the longest known first
  std::unordered_map<std::uint64_t, kept_prefix> prefixes_;
  std::deque<std::uint64_t> prefix_order_;
};

}  // namespace redline::scheduler
