#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.hpp"
#include "scheduler/batch_builder.hpp"
#include "scheduler/policy.hpp"

namespace redline::scheduler {

/// Named limits of the queue.
struct queue_limits {
  std::uint32_t running_max = 64;            // sequences that may be computed in turn
  std::uint32_t waiting_max = 256;           // sequences that wait for a place among them
  std::uint32_t tokens_max = 0;              // of one sequence: the model's context
  std::uint32_t pages_count = 0;             // the whole pool
};

/// A session's request for one round.
struct submission {
  sequence_id sequence;
  tenant_id tenant;
  round_id round;
  std::uint32_t from = 0;          // the log's tail starts here
  std::span<const token> tail;
  std::span<const token> draft;
  std::span<const draft_stretch> sources;  // of the draft's tokens
  std::uint32_t tokens_max = 0;    // most tokens the sequence can come to hold
};

enum class submit_outcome : std::uint8_t {
  taken,
  already_running,   // this round is being worked on: its verdict will come
  already_answered,  // this round was answered: send the old verdict again
  stale,             // an older round than the last
  log_gap,           // the tail starts behind the known log: see known_count
  queue_full,
  too_long,          // would not fit into the context or the pool
  empty_log,         // there is no token to start from
};

/// What a finished run means for its session.
struct round_outcome {
  sequence_id sequence;
  round_id round;
  std::uint32_t verified_count = 0;
  std::uint32_t passes = 0;
  std::uint32_t rows = 0;
};

/// Result of one planned run: how much of the draft was accepted and the tokens to append (empty for a prompt chunk).
struct run_answer {
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;
};

/// The sequences that want the target model, each with its tokens and how many of them are computed. Decides what runs
/// next and keeps count of what ran; computes nothing, sends nothing, and has no clock of its own.
class run_queue {
 public:
  run_queue(queue_limits limits, std::unique_ptr<policy> order);

  submit_outcome submit(const submission& s, instant now);
  /// Forgets the sequence. A run of it that is in flight is ignored when it completes.
  void release(sequence_id sequence);

  /// The next pass under `limits` (pages_free is filled in by the queue); empty when nothing can run.
  batch_plan plan(budget limits, instant now);
  /// Marks the plan's runs as in flight.
  void begin(const batch_plan& plan);
  /// Takes the answers, one per run of the plan in order; returns the rounds that are now answered.
  std::vector<round_outcome> complete(const batch_plan& plan, std::span<const run_answer> answers, microseconds took,
                                      instant now);
  /// The pass did not happen; its runs are open again.
  void abandon(const batch_plan& plan);

  /// The sequence whose pages should be taken so that the oldest starving item can run; its KV counts as lost. nullopt when
  /// nobody starves for pages, or nobody may be asked.
  std::optional<sequence_id> choose_victim(const batch_plan& plan, instant now);
  /// All KV is lost (the target model restarted): everything is computed again from the logs.
  void forget_all_kv();

  [[nodiscard]] std::uint32_t known_count(sequence_id sequence) const;
  [[nodiscard]] std::span<const token> log(sequence_id sequence) const;
  [[nodiscard]] std::span<const token> draft(sequence_id sequence) const;
  [[nodiscard]] bool holds(sequence_id sequence) const { return sequences_.contains(sequence); }
  /// Its round has been asked for and not answered.
  [[nodiscard]] bool awaits_answer(sequence_id sequence) const {
    const auto it = sequences_.find(sequence);
    return it != sequences_.end() && it->second.open;
  }
  [[nodiscard]] std::uint32_t running_count() const { return running_count_; }
  [[nodiscard]] std::uint32_t waiting_count() const {
    return static_cast<std::uint32_t>(sequences_.size()) - running_count_;
  }
  [[nodiscard]] std::uint32_t pages_held() const;
  [[nodiscard]] const cost_model& cost() const { return cost_; }
  /// Passes measured elsewhere, for a model that has seen none. Ignored once passes were seen.
  void learn_costs(std::span<const cost_sample> samples);

  /// Aborts when counts contradict each other.
  void check_integrity() const;

 private:
  struct sequence_state {
    tenant_id tenant;
    instant arrival;
    instant idle_since;
    std::vector<token> log;
    std::vector<token> draft;
    std::uint32_t computed_count = 0;
    std::uint32_t tokens_max = 0;
    round_id round;
    std::uint32_t passes = 0;
    std::uint32_t rows = 0;
    bool admitted = false;
    bool open = false;       // the round waits for an answer
    bool in_flight = false;
    std::vector<draft_stretch> sources;  // of the draft
    source_records drafts;
  };

  void admit_waiting();

  queue_limits limits_;
  std::unique_ptr<policy> policy_;
  std::unordered_map<sequence_id, sequence_state> sequences_;
  std::uint32_t running_count_ = 0;
  std::uint32_t page_tokens_ = 32;
  cost_model cost_;
  source_records typical_drafts_;
  std::vector<work_item> items_;
  std::vector<item_index> order_;
};

}  // namespace redline::scheduler
