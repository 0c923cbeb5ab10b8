#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "bench/studies/fleet/pass_curve.hpp"
#include "runtime/base/ids.hpp"
#include "runtime/kv/kept_list.hpp"
#include "scheduler/placement.hpp"
#include "scheduler/run_queue.hpp"

namespace redline::studies {

struct worker_limits {
  std::uint32_t running_max = 64;
  std::uint32_t waiting_max = 256;
  std::uint32_t tokens_max = 4096;  // for each sequence
  std::uint32_t pages_count = 4096;
};

/// One worker of a simulated pool: the scheduler's own run_queue with its batches and learned costs, an account of KV
/// pages and cached prefixes, and totals as its reports have them. It computes nothing; its caller decides how long a
/// pass takes and which tokens it gives.
class fleet_worker {
 public:
  /// Prompt beginnings are identified by number: one per conversation, and one that a tenant's conversations share.
  struct prompt_kinship {
    std::uint64_t conversation = 0;
    std::uint64_t shared = 0;
    std::uint32_t shared_tokens = 0;
    /// Replaces prefix_key: the key of the first `blocks` blocks of its prompts.
    [[nodiscard]] std::uint64_t key_of(std::uint32_t blocks) const;
  };
  struct question {
    sequence_id sequence;
    tenant_id tenant;
    round_id round;
    std::uint32_t from = 0;  // the log's tail begins here
    std::uint32_t tail = 0;  // the number of tokens in it
    std::uint32_t draft = 0;
    float chance = 1;  // how probably each draft token is right
    std::uint32_t tokens_max = 0;
    prompt_kinship kin;
  };
  struct taken {
    scheduler::submit_outcome outcome = scheduler::submit_outcome::taken;
    std::uint32_t cached = 0;  // tokens of a new sequence that need no computation
  };

  /// `number` must be unique among workers and process starts.
  fleet_worker(const worker_limits& limits, const pass_curve& curve, std::uint64_t number);

  taken submit(const question& q, instant now);
  /// Plans the next pass and counts it as in flight; null when there is nothing to compute.
  const scheduler::batch_plan* begin_pass(instant now);
  /// Takes one answer for every run of the plan and returns the outcomes of the rounds that are answered now.
  std::vector<scheduler::round_outcome> end_pass(std::span<const scheduler::run_answer> answers, microseconds took,
                                                 instant now);
  /// The sequence's KV stays cached until the pages are needed.
  void release(sequence_id sequence);

  /// The cached prefixes, or the changes since this revision; a gateway asks once a second.
  [[nodiscard]] kv::kept_news say_kept(std::uint64_t revision, instant now);

  [[nodiscard]] const scheduler::batch_plan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t computed_count(sequence_id sequence) const;
  [[nodiscard]] bool is_busy() const { return is_busy_; }
  [[nodiscard]] std::uint32_t running_count() const { return queue_.running_count(); }
  [[nodiscard]] std::uint32_t waiting_count() const { return queue_.waiting_count(); }
  [[nodiscard]] std::uint64_t pending_rows() const { return queue_.pending_rows(); }
  [[nodiscard]] double prompt_row_us() const { return queue_.prompt_row_us(); }
  [[nodiscard]] std::uint64_t batches_total() const { return batches_total_; }
  [[nodiscard]] std::uint64_t rows_total() const { return rows_total_; }
  [[nodiscard]] std::uint64_t forward_us_total() const { return forward_us_total_; }
  [[nodiscard]] std::uint64_t preempted_total() const { return preempted_total_; }
  void check_integrity() const;

 private:
  struct resident {
    prompt_kinship kin;
    std::uint32_t pages = 0;
  };
  struct kept_beginning {
    prompt_kinship kin;
    std::uint32_t tokens = 0;
    std::uint64_t stamp = 0;  // time of the last use
  };

  [[nodiscard]] std::uint32_t find_cached(const prompt_kinship& kin, std::uint32_t prompt_tokens);
  void keep(std::uint64_t beginning, const prompt_kinship& kin, std::uint32_t tokens);
  void forget(std::uint64_t beginning);
  void trim_kept();
  void take_pages(const scheduler::batch_plan& plan);
  [[nodiscard]] kv::growth next_of(sequence_id sequence) const;

  worker_limits limits_;
  scheduler::run_queue queue_;
  scheduler::batch_plan plan_;
  bool is_busy_ = false;
  std::unordered_map<sequence_id, resident> residents_;
  std::uint32_t pages_used_ = 0;  // pages of residents
  std::unordered_map<std::uint64_t, kept_beginning> kept_;
  std::map<std::uint64_t, std::uint64_t> kept_order_;  // by stamp, the least recently used first
  std::uint32_t kept_pages_ = 0;
  kv::kept_list said_;
  std::optional<instant> said_at_;
  std::uint64_t stamp_ = 0;
  std::uint64_t batches_total_ = 0, rows_total_ = 0, forward_us_total_ = 0, preempted_total_ = 0;
};

}  // namespace redline::studies
