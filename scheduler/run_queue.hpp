#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/cost/running_quantile.hpp"
#include "scheduler/admission.hpp"
#include "scheduler/batch_builder.hpp"
#include "scheduler/gathering.hpp"
#include "scheduler/policy.hpp"
#include "scheduler/round.hpp"
#include "scheduler/sequence_log.hpp"

namespace redline::scheduler {

struct queue_limits {
  std::uint32_t running_max = 64;   // sequences that may be computed in turn
  std::uint32_t waiting_max = 256;  // sequences that wait for a slot among them
  std::uint32_t tokens_max = 0;     // per sequence: the model's context
  kv::amount memory;                // total memory
};

enum class submit_outcome : std::uint8_t {
  taken,
  already_running,   // this round is being computed: its answer will come
  already_answered,  // this round was answered: send the old answer again
  nothing_to_do,     // a prefill whose tokens all have KV: this is the answer
  busy,              // a pass for the round that this one overtakes is in flight: submit it again after that
  stale,             // older than the last round
  log_gap,           // the tail starts after the log's end, or a splice lies outside the log: see known_count
  queue_full,
  too_long,   // would not fit into the context or the pool
  empty_log,  // there is no token to start from
};

/// The outcome of submitting a round.
struct submitted {
  submit_outcome outcome = submit_outcome::taken;
  /// What the sequence's memory must do, in order; then it drops all tokens after the first `kv_count` of its log.
  std::vector<kv::table_splice> splices;
};

/// The memory that a sequence takes when it grows; constant while a pass is planned. If empty, a page for each
/// page_tokens tokens.
using growth_of = std::function<kv::growth(sequence_id)>;

/// An answered round.
struct round_outcome {
  sequence_id sequence;
  round_id round;
  std::uint32_t verified_count = 0;
  std::uint32_t passes = 0;
  std::uint32_t rows = 0;
  std::uint32_t recomputed_count = 0;
  std::uint32_t cached_count = 0;  // tokens of the log that had KV before the round
};

/// How passes were filled since the process start.
struct gathering_counts {
  std::uint64_t waits = 0;  // passes that waited for sequences between rounds
  microseconds waited{0};
  std::uint64_t missed = 0;  // sequences that did not come within the wait for them
  /// Decoding sequences of a pass, as a part of those that were ready or came while it ran; a recent average.
  double fill = 1;
};

/// The result of one planned run: the accepted length of the draft, and the tokens to append (none for a prompt chunk).
struct run_answer {
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;
};

/// The rounds of all sequences: accepts them, plans passes of the target model for open rounds, and closes these with
/// the results. It computes nothing, sends nothing, and has no clock of its own.
class run_queue {
 public:
  run_queue(queue_limits limits, std::unique_ptr<policy> order);

  /// A round that is not taken changes nothing. `facts` count only for a new sequence.
  submitted submit(const round& r, const sequence_facts& facts, instant now);
  /// Closes a round whose answer is no longer wanted, without an answer, at once or when its run in flight completes. A
  /// later round may overtake it.
  void give_up(sequence_id sequence, round_id round, instant now);
  /// Forgets the sequence. If one of its runs is in flight, the result is ignored.
  void release(sequence_id sequence);

  /// The next pass under `limits`; empty if nothing can run, or if the pass waits for sequences between two rounds of
  /// an answer (`choose_wait`). No sequence is waited for twice in one absence. Prefills have passes of their own, of
  /// one chunk.
  batch_plan plan(budget limits, instant now, const growth_of& growth = {});
  /// When to plan again even if nothing happens: the end of the wait.
  [[nodiscard]] std::optional<instant> replan_at() const { return wait_end_; }
  /// Marks the plan's runs as in flight, and the sequences that it left out as passed over.
  void begin(const batch_plan& plan);
  /// Takes the answers, one per run of the plan in order, and returns the rounds that are now answered. experts: the
  /// number of distinct experts that the pass touched, over all layers; 0 means not counted.
  std::vector<round_outcome> complete(const batch_plan& plan, std::span<const run_answer> answers, microseconds took,
                                      instant now, std::uint64_t experts = 0);
  /// Call it if the pass did not happen; its runs can be planned again.
  void put_back(const batch_plan& plan);

  /// The sequence whose memory is to be taken so that the oldest sequence that the plan left out for lack of memory can
  /// run; its KV now counts as lost. A prefill takes memory from no other sequence: it loses its own if it alone has
  /// KV. nullopt if no sequence lacks memory, or none may lose it.
  std::optional<sequence_id> choose_victim(const batch_plan& plan, instant now);
  /// The sequence's KV is lost.
  void forget_kv(sequence_id sequence) { lose_kv(*sequences_.find(sequence)); }
  /// Only the first `count` tokens with KV still have it: the sequence's memory cannot continue from a later one.
  void keep_kv(sequence_id sequence, std::uint32_t count) { sequences_.at(sequence).log.keep_kv(count); }
  /// All KV is lost because the target model restarted: everything is computed again from the logs.
  void forget_all_kv();

  /// Does not plan the sequence until `until`, while another one computes the beginning of its log.
  void wait_until(sequence_id sequence, instant until);
  void end_wait(sequence_id sequence) { sequences_.at(sequence).waits_until.reset(); }
  [[nodiscard]] bool waits(sequence_id sequence) const { return sequences_.at(sequence).waits_until.has_value(); }
  /// The sequence adopted KV for its first `count` tokens, fewer than all, in place of the KV it had. It must not have
  /// a run in flight, and no longer waits.
  void note_adopted(sequence_id sequence, std::uint32_t count);

  [[nodiscard]] std::uint32_t known_count(sequence_id sequence) const;
  [[nodiscard]] const sequence_log& log(sequence_id sequence) const { return sequences_.at(sequence).log; }
  [[nodiscard]] const priority_facts& facts_of(sequence_id sequence) const { return sequences_.at(sequence).at; }
  [[nodiscard]] std::span<const token> draft(sequence_id sequence) const { return sequences_.at(sequence).draft; }
  [[nodiscard]] bool holds(sequence_id sequence) const { return sequences_.contains(sequence); }
  /// Whether the sequence's round is open.
  [[nodiscard]] bool awaits_answer(sequence_id sequence) const {
    const auto it = sequences_.find(sequence);
    return it != sequences_.end() && it->second.at.open;
  }
  [[nodiscard]] bool has_slot(sequence_id sequence) const { return slots_.has_slot(sequence); }
  [[nodiscard]] std::uint32_t running_count() const { return slots_.running_count(); }
  [[nodiscard]] std::uint32_t waiting_count() const { return slots_.waiting_count(); }
  /// Rows that open rounds have yet to compute, without prefills, which let all others go first.
  [[nodiscard]] std::uint64_t pending_rows() const;
  /// Microseconds for a row of a long prompt; 0 if unknown.
  [[nodiscard]] double prompt_row_us() const;
  [[nodiscard]] const cost::cost_model& cost() const { return cost_; }
  [[nodiscard]] const gathering_counts& gathered() const { return gathered_; }
  /// Learns costs from passes of a model with these experts that were measured elsewhere. Ignored once this queue has
  /// seen passes.
  void learn_costs(std::span<const cost::cost_sample> samples, const cost::mixture_shape& of = {});

  /// Aborts if counts contradict each other.
  void check_integrity() const;

 private:
  struct sequence_state {
    sequence_facts facts;
    priority_facts at;
    sequence_log log;
    std::optional<instant> waits_until;
    // The open round, or the last one:
    round_id round;
    std::vector<token> draft;
    std::vector<cost::draft_segment> segments;  // segments of the draft
    bool scores_draft = false;
    std::uint32_t passes = 0;
    std::uint32_t rows = 0;
    std::uint32_t cached_count = 0;  // tokens that had KV when the round began
    std::uint32_t missed_count = 0;  // consecutive passes that left it out
    std::uint32_t last_rows = 1;     // rows of its last run that wanted logits
    enum class next_round : std::uint8_t { may_come, is_waited_for, not_expected } next = next_round::may_come;
    return_times returns{returns_memory};
    bool given_up = false;  // with a run in flight: the round is closed when that completes
  };
  using entry = std::pair<const sequence_id, sequence_state>;
  static constexpr double returns_memory = 16;       // rounds of one sequence
  static constexpr double all_returns_memory = 256;  // rounds of all sequences, or of all of one tenant

  [[nodiscard]] std::optional<submit_outcome> refusal(const round& r, const sequence_facts& facts) const;
  entry& open_sequence(const round& r, const sequence_facts& facts, instant now);
  std::vector<kv::table_splice> open_round(entry& e, const round& r, instant now);
  void close(entry& e, instant now);
  void end_run(entry& e);
  void lose_kv(entry& e);
  [[nodiscard]] const return_times& returns_of(tenant_id tenant) const;
  void note_return(sequence_state& q, microseconds after);
  void note_fill(const batch_plan& plan);
  [[nodiscard]] bool is_away(sequence_id sequence) const;
  [[nodiscard]] bool still_waits(instant now);
  [[nodiscard]] bool begins_to_wait(const batch_plan& plan, bool is_background, microseconds time_max, instant now);
  [[nodiscard]] static work_item item_of(const entry& e);
  /// The next tokens to compute for the current round.
  [[nodiscard]] static token_range pending(const sequence_state& q) { return q.log.pending(q.at.prefill_only); }

  queue_limits limits_;
  std::unique_ptr<policy> policy_;
  std::unordered_map<sequence_id, sequence_state> sequences_;
  admission slots_;
  cost::cost_model cost_;
  /// How much longer long passes take than predicted: the 95th percentile.
  cost::running_quantile overrun_p95_{0.95, 1, 0.1};
  microseconds long_pass_{0};  // half of what a pass was allowed to take
  width_trials trials_;
  std::vector<work_item> items_;
  std::vector<item_index> order_;
  std::unordered_map<tenant_id, return_times> tenant_returns_;  // at most tenants_max
  return_times all_returns_{all_returns_memory};
  bool returns_seen_ = false;            // until then all_returns_ is a guess
  std::optional<instant> wait_end_;      // set while a pass waits for sequences between rounds
  instant wait_began_;                   // when the wait began
  std::vector<sequence_id> waited_for_;  // sequences that the pass waits for
  bool pass_out_ = false;                // from `begin` to `complete`
  instant planned_at_;                   // when the pass in flight was planned
  double around_us_ = 0;                 // overhead of a pass in addition to its computation: a recent average
  std::uint32_t asked_meanwhile_ = 0;    // rounds after the first of an answer that came during the pass
  gathering_counts gathered_;
};

}  // namespace redline::scheduler
