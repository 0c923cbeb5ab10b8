#pragma once

#include <deque>
#include <string_view>
#include <unordered_map>
#include <variant>

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/trace/tracer.hpp"
#include "scheduler/prefix_followers.hpp"
#include "scheduler/run_queue.hpp"

namespace redline::actors {

class cache_manager;
class target_model;

struct scheduler_options {
  scheduler::queue_limits limits;
  scheduler::budget budget;
  std::string policy = "fifo";
  prefix_sharing sharing = prefix_sharing::tenant;
  microseconds cache_patience{1'000'000};    // then the cache manager is sent the batch again
  microseconds target_patience{60'000'000};  // then rounds are refused, because the target model does not answer
  std::uint32_t batch_bytes_max = sizes::message_bytes_max - (1u << 20);  // estimated; what is over waits
  microseconds abandoned_after{
      120'000'000};  // a sequence without a request for this long is released; a late session starts it anew
  std::shared_ptr<trace::tracer> tracer;  // null: nothing is traced
};

/// Feeds the target model: collects the rounds of all sessions and plans one batch at a time. A batch goes to the cache
/// manager, which adds the page tables and passes it on to the target model, which answers. Holds a copy of every log
/// so that it can have anything computed again; never touches page tables, KV or logits.
class verify_scheduler final : public actor::actor_of<verify_scheduler> {
 public:
  using accepts = actor::protocol<verify_run, prefill_run, give_up_round, release_sequence, batch_held, batch_lost,
                                  prefix_adopted, batch_done, target_ready, report_status, scheduler_tick,
                                  wait_over, actor::peer_state, actor::undeliverable>;

  verify_scheduler(actor::actor_context& context, const scheduler_options& options,
                   std::unique_ptr<scheduler::policy> policy, actor::actor_ref<cache_manager> cache,
                   actor::actor_ref<target_model> target);

  void on_start();
  void on(const verify_run& m);
  void on(const prefill_run& m);
  void on(const give_up_round& m);
  void on(const release_sequence& m);
  void on(const batch_held& m);
  void on(const batch_lost& m);
  void on(const prefix_adopted& m);
  void on(const batch_done& m);
  void on(const target_ready& m);
  void on(const report_status& m);
  void on(const scheduler_tick& m);
  void on(const wait_over& m);
  void on(const actor::peer_state& m);
  void on(const actor::undeliverable& m);

  [[nodiscard]] const scheduler::run_queue& queue() const { return queue_; }

 private:
  /// A round that was asked for. Of a prefill, `run` has no draft and no sampling.
  struct question {
    actor::address session;
    verify_run run;
    bool prefill_only = false;
    trace::span_context span{};  // of the answer
  };

  /// What is told of an answer that is traced.
  struct traced_answer {
    trace::span_context of;
    trace::open_span sequence;
    trace::open_span prompt;  // until the first round is answered
    std::int64_t rounds = 0, passes = 0, rows = 0, drafted = 0, accepted = 0;
  };

  /// A grammar that some sequences follow. Its text goes to a target model once.
  struct shared_grammar {
    grammar::constraint text;  // without a state
    std::size_t digest = 0;
    std::uint64_t name = 0;
    std::uint64_t told_life = 0;   // the target model that has had its text; 0: none
    std::uint64_t told_batch = 0;  // the batch that it went with last
  };

  /// What the answers to a sequence's rounds need apart from its tokens.
  struct client {
    actor::address session;
    instant heard;                     // when it last asked
    std::optional<round_id> untold;    // its first round, until it is answered or known to be taken
    std::optional<instant> queued_at;  // the round, until its first pass
    microseconds queued{0};            // then it had waited so long
    std::uint32_t prompt_count = 0;
    model::sampling_params sampling;
    std::optional<std::uint32_t> logprobs;
    std::shared_ptr<shared_grammar> grammar;  // null: anything may follow
    std::vector<std::uint32_t> grammar_state;
    std::uint64_t evicted_count = 0;
    bool scores_draft = false;
    model::token_counter counts;             // of the log, when a penalty needs them
    tenant_id scope;                         // sequences of one scope share prefixes
    std::variant<verified, prefilled> last;  // answer
    std::uint32_t prefix_questions = 0;      // that were asked of the cache manager
    std::vector<question> overtaking;        // wait, in order, for the pass in flight to end
    std::unique_ptr<traced_answer> traced;
  };

  void take(const question& q);
  [[nodiscard]] bool lacks_grammar_of(const question& q) const;
  [[nodiscard]] std::shared_ptr<shared_grammar> share_grammar(const grammar::constraint& text);
  void begin_trace(client& c, const question& q);
  static void trace_round(client& c, const verified& answer);
  static void end_trace(client& c, const failure* why_not = nullptr);
  void step();
  void note_batch(microseconds took);
  void note_grammars();
  void spell_grammars();
  [[nodiscard]] worker_status as_worker() const;
  void place();
  void compute_again(sequence_id sequence);
  void note_pages(const page_report& pages);
  void release_pages_of(sequence_id sequence);
  void fail_batch(const failure& why);
  void take_overtaking();
  void look_for_prefix(sequence_id sequence);
  void look_for_leader(sequence_id sequence);
  void serve_followers(const scheduler::batch_plan& plan);
  void let_followers_look(sequence_id leader);
  void offer_prefix_of(sequence_id sequence);
  void look_again(instant now);
  void lose_all_kv();
  void release_abandoned();
  void tell_waiting();
  void lose_target();
  [[nodiscard]] bool is_stalled() const;
  bool make_runs();
  void refuse_sequence(sequence_id sequence, const failure& why);
  void add_grammar(batch_run& run, const client& c) const;
  [[nodiscard]] batch_run make_run(const scheduler::planned_run& planned);
  [[nodiscard]] cost::step_cost step_cost_of(sequence_id sequence, std::size_t sessions) const;
  [[nodiscard]] std::uint32_t retry_after_ms() const;

  scheduler_options options_;
  scheduler::run_queue queue_;
  scheduler::prefix_followers followers_;
  actor::actor_ref<cache_manager> cache_;
  actor::actor_ref<target_model> target_;
  std::unordered_map<sequence_id, client> clients_;
  std::uint64_t epoch_ = 0;              // of the KV: a new one begins when all of it is lost
  std::uint32_t pages_free_ = 0;         // as the cache manager last said
  std::uint32_t window_pages_free_ = 0;  // likewise
  bool pages_came_free_ = false;         // perhaps, since the last batch was sent
  bool is_batch_out_ = false;            // a batch is with the cache manager or the target model:
  scheduler::batch_plan plan_;           // what was planned,
  place_batch sent_;                     // sent,
  instant sent_at_;                      // and when
  instant placed_at_;                    // when it was sent first
  bool target_up_ = false;
  std::uint64_t target_life_ = 0;  // of the target model that was heard last
  instant target_lost_at_;
  std::uint64_t question_ = 0;      // the last about a known prefix
  std::uint64_t grammar_name_ = 0;  // the last that was given
  bool spells_grammars_ = false;    // the target model lacked one: the next batch has the texts of all
  bool overtaken_ = false;          // some client has a round that waits for a pass to end
  std::optional<instant> look_at_;  // when the next wait_over comes
  scheduler_report report_;
  std::deque<batch_record> batches_;  // the last ones
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::verify_scheduler>;
