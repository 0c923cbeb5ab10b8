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
};

/// What a log_splice means for the sequence's page table, where only tokens with KV are.
struct table_splice {
  std::uint32_t table_count = 0;  // tokens in the table before it, at most
  std::uint32_t at = 0;
  std::uint32_t removed_count = 0;
  std::int32_t shift = 0;      // of the tokens behind
  std::uint32_t revision = 0;  // of the table, after it
  std::size_t of = 0;          // index of the log_splice
  bool operator==(const table_splice&) const = default;
};

/// Pages of one sequence, as its owner sees them.
struct page_account {
  std::uint32_t held = 0;    // by this sequence alone
  std::uint32_t shared = 0;  // and others that are kept as a known beginning
  std::uint32_t room = 0;    // tokens that find place without another page
  bool operator==(const page_account&) const = default;

  void add(std::uint32_t tokens_count, std::uint32_t page_tokens) {
    const std::uint32_t pages = pages_to_take(tokens_count, room, page_tokens);
    held += pages;
    room += pages * page_tokens - tokens_count;
  }
  /// Undoes the end of the last add.
  void take_back(std::uint32_t tokens_count, std::uint32_t page_tokens) {
    held -= (room + tokens_count) / page_tokens;
    room = (room + tokens_count) % page_tokens;
  }
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

  /// Splices are taken with the round or not at all; what they do to the page table is appended to `cuts`.
  submit_outcome submit(const submission& s, instant now, std::vector<table_splice>& cuts);
  /// Nobody waits for this round: it is closed without an answer, at once or when its run in flight completes, which a
  /// later round may overtake.
  void give_up(sequence_id sequence, round_id round, instant now);
  /// Forgets the sequence. A run of it that is in flight is ignored when it completes.
  void release(sequence_id sequence);

  /// The next pass under `limits` (pages_free is filled in by the queue); empty when nothing can run. Rounds for the
  /// cache only have passes of their own, of one chunk, and only when no session is between two rounds of an answer.
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
  void abandon(const batch_plan& plan);

  /// The sequence whose pages should be taken so that the oldest starving item can run; its KV counts as lost. nullopt
  /// when nobody starves for pages, or nobody may be asked.
  std::optional<sequence_id> choose_victim(const batch_plan& plan, instant now);
  /// All KV is lost (the target model restarted): everything is computed again from the logs.
  void forget_all_kv();

  /// What the cache manager says of the sequence's pages, with the tokens of the run in flight.
  void note_pages(sequence_id sequence, page_account account);
  /// And how many pages of known beginnings sequences hold: they count once, whoever has them.
  void note_shared_pages(std::uint32_t count) { shared_pages_ = count; }
  [[nodiscard]] std::uint32_t shared_pages() const { return shared_pages_; }

  /// A sequence without KV waits until it is told what is known of its beginning, or until `until`. question: what was
  /// asked of the cache manager; 0: nothing yet.
  void await_prefix(sequence_id sequence, std::uint64_t question, instant until);
  [[nodiscard]] bool awaits_prefix(sequence_id sequence) const { return sequences_.at(sequence).awaits.has_value(); }
  /// The answer: its first `count` tokens have KV. False, and nothing changed, when nobody waits for it.
  bool adopt_prefix(sequence_id sequence, std::uint64_t question, std::uint32_t count, page_account account);

  [[nodiscard]] std::uint32_t known_count(sequence_id sequence) const;
  /// Tokens that the sequence's page table should have, and how often it was spliced.
  [[nodiscard]] std::uint32_t table_count(sequence_id sequence) const { return sequences_.at(sequence).kv.count(); }
  /// The first tokens that have KV without a hole.
  [[nodiscard]] std::span<const token> computed_prefix(sequence_id sequence) const;
  [[nodiscard]] std::uint32_t revision(sequence_id sequence) const { return sequences_.at(sequence).revision; }
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
  [[nodiscard]] std::uint32_t pages_held() const;
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
    page_account pages;
    std::uint32_t revision = 0;  // splices of the page table since it was empty
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
  static void apply(sequence_state& q, std::span<const log_splice> splices, std::vector<table_splice>& cuts);
  /// The next tokens to compute, for the round at hand.
  [[nodiscard]] static token_range pending(const sequence_state& q);
  static void lose_kv(sequence_state& q);

  queue_limits limits_;
  std::unique_ptr<policy> policy_;
  std::unordered_map<sequence_id, sequence_state> sequences_;
  std::uint32_t running_count_ = 0;
  std::uint32_t shared_pages_ = 0;
  std::uint32_t page_tokens_ = 32;
  cost::cost_model cost_;
  per_tenant<source_records> typical_drafts_;
  std::vector<work_item> items_;
  std::vector<item_index> order_;
};

}  // namespace redline::scheduler
