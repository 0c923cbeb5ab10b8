#pragma once

#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/per_tenant.hpp"
#include "runtime/base/result.hpp"
#include "scheduler/batch_builder.hpp"
#include "scheduler/coverage.hpp"
#include "scheduler/policy.hpp"

namespace redline::scheduler {

/// Named limits of the queue.
struct queue_limits {
  std::uint32_t running_max = 64;   // sequences that may be computed in turn
  std::uint32_t waiting_max = 256;  // sequences that wait for a place among them
  std::uint32_t tokens_max = 0;     // of one sequence: the model's context
  std::uint32_t pages_count = 0;    // the whole pool
};

/// A change in the middle of a log: tokens [at, at + removed_count) go, others come in their place.
struct log_splice {
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::span<const token> tokens;
  bool keeps_later = false;  // the tokens behind keep their KV; else all from `at` on are computed again
  bool moves_later = true;   // with keeps_later: they count as standing where they now are
  std::uint8_t policy = 0;   // the caller's name for it; comes back with the table_splice
};

/// What a log_splice means for the sequence's page table, where only tokens with KV are.
struct table_splice {
  std::uint32_t keep_count = 0;  // before it, the table loses all tokens after the first keep_count
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::int32_t shift = 0;   // positions by which the tokens after it move
  std::uint8_t policy = 0;  // of the log_splice
  bool operator==(const table_splice&) const = default;
};

/// What became of a sequence's page table since this was last asked for: the splices in order, then all tokens after
/// the first keep_count are dropped.
struct table_change {
  sequence_id sequence;
  std::vector<table_splice> splices;
  std::uint32_t keep_count = 0;
  bool operator==(const table_change&) const = default;
};

/// A session's request for one round.
struct submission {
  sequence_id sequence;
  tenant_id tenant;
  round_id round;
  std::span<const log_splice> splices;  // of the log as it is known, in order, before the tail
  std::uint32_t from = 0;               // the log's tail starts here
  std::span<const token> tail;
  std::span<const token> draft;
  std::span<const draft_stretch> sources;  // of the draft's tokens
  std::uint32_t tokens_max = 0;            // most tokens the sequence can come to hold
  bool prefill_only = false;  // compute KV for all but the last token and no more, in passes that nobody else wants; a
                              // later round may overtake it
};

enum class submit_outcome : std::uint8_t {
  taken,
  already_running,   // this round is being worked on: its verdict will come
  already_answered,  // this round was answered: send the old verdict again
  nothing_to_do,     // prefill_only, and all has KV: this is the answer
  busy,              // a pass for the round that this one overtakes is in flight: to be asked again after it
  stale,             // an older round than the last
  log_gap,           // the tail starts behind the known log, or a splice lies outside of it: see known_count
  queue_full,
  too_long,   // would not fit into the context or the pool
  empty_log,  // there is no token to start from
};

/// What a finished run means for its session.
struct round_outcome {
  sequence_id sequence;
  round_id round;
  std::uint32_t verified_count = 0;
  std::uint32_t passes = 0;
  std::uint32_t rows = 0;
  std::uint32_t recomputed_count = 0;
  std::uint32_t cached_count = 0;  // tokens of the log that had KV before the round
};

/// Result of one planned run: how much of the draft was accepted and the tokens to append (empty for a prompt chunk).
struct run_answer {
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;
};

/// The sequences that want the target model, each with its tokens and which of them are computed. Decides what runs
/// next and keeps count of what ran; computes nothing, sends nothing, and has no clock of its own.
class run_queue {
 public:
  run_queue(queue_limits limits, std::unique_ptr<policy> order);

  /// Splices are taken with the round or not at all.
  submit_outcome submit(const submission& s, instant now);
  /// Nobody waits for this round: it is closed without an answer, at once or when its run in flight completes, which a
  /// later round may overtake.
  void give_up(sequence_id sequence, round_id round, instant now);
  /// Forgets the sequence. A run of it that is in flight is ignored when it completes.
  void release(sequence_id sequence);

  /// The next pass under `limits`; empty when nothing can run. Rounds for the cache only have passes of their own, of
  /// one chunk, and only when no session is between two rounds of an answer.
  batch_plan plan(budget limits, instant now);
  /// When to plan again although nothing happened: the end of the pause after which rounds for the cache have their
  /// turn.
  [[nodiscard]] std::optional<instant> next_look(instant now) const;
  /// Marks the plan's runs as in flight.
  void begin(const batch_plan& plan);
  /// Takes the answers, one per run of the plan in order; returns the rounds that are now answered.
  std::vector<round_outcome> complete(const batch_plan& plan, std::span<const run_answer> answers, microseconds took,
                                      instant now);
  /// The pass did not happen; its runs are open again.
  void put_back(const batch_plan& plan);

  /// The sequence whose pages should be taken so that the oldest starving item can run; its KV counts as lost. nullopt
  /// when nobody starves for pages, or nobody may be asked.
  std::optional<sequence_id> choose_victim(const batch_plan& plan, instant now);
  /// All KV is lost (the target model restarted): everything is computed again from the logs.
  void forget_all_kv();

  /// The page tables that the plan's runs begin with, and what else has changed in any table: each change is told once.
  /// Of sequences that were left for lack of pages also what has not changed.
  std::vector<table_change> take_changes(const batch_plan& plan);
  /// Tables may give pages back when their changes are taken.
  [[nodiscard]] bool has_changes() const { return !changed_.empty(); }
  /// Tokens for which the sequence needs no further page, as the owner of the pages last counted them.
  void note_room(sequence_id sequence, std::uint32_t tokens_count);

  /// A sequence without KV waits until it is told what is known of its beginning, or until `until`. question: what was
  /// asked of the cache manager; 0: nothing yet.
  void await_prefix(sequence_id sequence, std::uint64_t question, instant until);
  [[nodiscard]] bool awaits_prefix(sequence_id sequence) const { return sequences_.at(sequence).awaits.has_value(); }
  /// The answer: its first `count` tokens have KV. False, and nothing changed, when nobody waits for it.
  bool adopt_prefix(sequence_id sequence, std::uint64_t question, std::uint32_t count);

  [[nodiscard]] std::uint32_t known_count(sequence_id sequence) const;
  /// The first tokens that have KV without a hole.
  [[nodiscard]] std::span<const token> computed_prefix(sequence_id sequence) const;
  [[nodiscard]] std::span<const token> log(sequence_id sequence) const;
  [[nodiscard]] std::span<const token> draft(sequence_id sequence) const;
  /// Of the log, the first tokens whose KV is, or will be, what computing them anew gives.
  [[nodiscard]] std::uint32_t exact_count(sequence_id sequence) const;
  [[nodiscard]] bool holds(sequence_id sequence) const { return sequences_.contains(sequence); }
  /// Its round has been asked for and not answered.
  [[nodiscard]] bool awaits_answer(sequence_id sequence) const {
    const auto it = sequences_.find(sequence);
    return it != sequences_.end() && it->second.open;
  }
  [[nodiscard]] std::uint32_t running_count() const { return running_count_; }
  /// Sequences with an open round that somebody waits for and no place. Those between two rounds want none.
  [[nodiscard]] std::uint32_t waiting_count() const;
  [[nodiscard]] const cost::cost_model& cost() const { return cost_; }
  /// Passes measured elsewhere, for a model that has seen none. Ignored once passes were seen.
  void learn_costs(std::span<const cost::cost_sample> samples);

  /// Aborts when counts contradict each other.
  void check_integrity() const;

 private:
  static constexpr std::uint32_t all_exact = 0xffffffffU;

  struct prefix_question {
    std::uint64_t number = 0;  // 0: not asked yet
    instant until;
  };

  struct sequence_state {
    tenant_id tenant;
    instant arrival;
    instant idle_since;
    std::vector<token> log;
    std::vector<token> draft;
    coverage kv;
    std::vector<table_splice> splices;  // of the page table, since its changes were last taken
    bool table_changed = false;         // and is in changed_
    std::uint32_t room = 0;             // see note_room
    std::uint32_t exact_count =
        all_exact;                       // the KV of tokens from here on is not what computing the log anew would give
    std::uint32_t recomputed_count = 0;  // times that such KV was lost
    std::uint32_t tokens_max = 0;
    round_id round;
    std::uint32_t passes = 0;
    std::uint32_t rows = 0;
    bool admitted = false;
    bool open = false;  // the round waits for an answer
    bool prefill_only = false;
    std::uint32_t cached_count = 0;  // tokens that had KV when the round began
    std::optional<prefix_question> awaits;
    bool given_up = false;  // with in_flight: the round is closed when that completes
    bool in_flight = false;
    std::vector<draft_stretch> sources;  // of the draft
    source_records drafts;
    std::shared_ptr<source_records> typical;  // of its tenant's sequences together
  };

  void admit_waiting(instant now);
  [[nodiscard]] sequence_state* longest_idle(instant now);
  [[nodiscard]] std::optional<instant> pause_end(instant now) const;
  static void close(sequence_state& q, instant now);
  [[nodiscard]] static bool fits(const sequence_state& q, const submission& s);
  static void apply(sequence_state& q, std::span<const log_splice> splices);
  void note_change(sequence_id sequence, sequence_state& q);
  /// The next tokens to compute, for the round at hand.
  [[nodiscard]] static token_range pending(const sequence_state& q);
  void lose_kv(sequence_id sequence, sequence_state& q);

  queue_limits limits_;
  std::unique_ptr<policy> policy_;
  std::unordered_map<sequence_id, sequence_state> sequences_;
  std::vector<sequence_id> changed_;  // those whose page tables are to change, in no order
  std::uint32_t running_count_ = 0;
  std::uint32_t page_tokens_ = 32;
  cost::cost_model cost_;
  per_tenant<source_records> typical_drafts_;
  std::vector<work_item> items_;
  std::vector<item_index> order_;
};

}  // namespace redline::scheduler
