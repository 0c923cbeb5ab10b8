#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/serving/pass_statistics.hpp"
#include "actors/serving/sequence_clients.hpp"
#include "runtime/actor/offload.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/base/size_limits.hpp"
#include "runtime/kv/cache.hpp"
#include "runtime/kv/kept_list.hpp"
#include "scheduler/prefix_followers.hpp"

namespace redline::actors {

class target_model;

struct scheduler_options {
  scheduler::queue_limits limits;  // the cache manager fills in the memory
  scheduler::budget budget;
  std::string policy = "fifo";
  prefix_sharing sharing = prefix_sharing::tenant;
  microseconds target_patience{60'000'000};  // then rounds are refused, because the target model does not answer
  std::uint32_t batch_bytes_max = sizes::message_bytes_max - (1u << 20);  // estimated; the rest waits
  microseconds abandoned_after{
      120'000'000};  // a sequence without a request for this long is released; a late session starts it again
  std::optional<token> message_start;     // what messages begin with: states of recurrent layers are copied before it
  std::shared_ptr<trace::tracer> tracer;  // nothing is traced if null
  std::shared_ptr<grammar::automaton_store> automata = std::make_shared<grammar::automaton_store>();
  std::shared_ptr<actor::thread_pool> pool;  // compiles grammars; if null, the cache manager's own thread does
};

/// Owns the machine of one target model: the queue of rounds, the memory of every sequence, the learned costs of
/// passes, and the one pass that is in flight. Collects the rounds of all sessions, plans a pass, allocates memory for
/// its runs, and sends it to the target model. Keeps a copy of every log, so that everything can be computed again;
/// never touches keys, values or logits.
class cache_manager final : public actor::actor_of<cache_manager> {
 public:
  using accepts =
      actor::protocol<verify_run, give_up_round, release_sequence, batch_done, target_ready, report_status, read_kept,
                      manager_tick, replan, actor::job_done, actor::peer_state, actor::undeliverable>;

  /// Receives changes of the prefix cache, in order; may be empty.
  using listener = std::function<void(const std::vector<kv::prefix_change>&)>;
  /// size: of the target model's memory.
  cache_manager(actor::actor_context& context, const scheduler_options& options, kv::pool_size size,
                actor::actor_ref<target_model> target, listener changes = {});

  void on_start();
  void on(const verify_run& m);
  void on(const give_up_round& m);
  void on(const release_sequence& m);
  void on(const batch_done& m);
  void on(const target_ready& m);
  void on(const report_status& m);
  void on(const read_kept& m);
  void on(const manager_tick& m);
  void on(const replan& m);
  void on(const actor::job_done& m) { work_.on(m); }
  void on(const actor::peer_state& m);
  void on(const actor::undeliverable& m);
  bool on_idle();

  [[nodiscard]] const scheduler::run_queue& queue() const { return queue_; }
  [[nodiscard]] const kv::cache& memory() const { return memory_; }
  /// Aborts when the queue, the followers or the memory contradict themselves.
  void check_integrity() const;
  /// The most pages of each kind that a check between messages looks at, which bounds its time.
  static constexpr std::uint32_t check_pages_max = 4096;
  /// The number of pages, of any kind, that such checks have looked at.
  [[nodiscard]] std::uint64_t checked_count() const { return checked_count_; }

 private:
  void take(const asked_round& q);
  void compile_for(const asked_round& q);
  void take_compiled(sequence_id sequence, const result<std::shared_ptr<const grammar::byte_automaton>>& automaton);
  void open(const asked_round& q, const scheduler::submitted& taken, bool is_new);
  void ask_for_log(const asked_round& q);
  void refuse(const asked_round& q, failure why, std::uint32_t retry_after_ms = 0);
  void refuse_sequence(sequence_id sequence, const failure& why);
  void forget(sequence_id sequence);

  void step();
  [[nodiscard]] bool plan_pass();
  [[nodiscard]] bool make_memory(instant now);
  void arm_replan(instant now);
  [[nodiscard]] std::optional<std::vector<batch_run>> make_runs();
  [[nodiscard]] std::vector<kv::run_range> make_ranges() const;
  [[nodiscard]] batch_run make_run(const scheduler::planned_run& planned);
  void send_pass(std::vector<batch_run> runs, kv::allocated memory);

  void answer_rounds(const batch_done& m, microseconds took);
  void put_back_pass();
  void fail_pass(const failure& why);
  [[nodiscard]] cost::step_cost step_cost_of(sequence_id sequence, std::size_t sessions) const;

  void trim_memory(sequence_id sequence);
  void compute_again(sequence_id sequence);
  void lose_all_kv();
  void look_for_prefix(sequence_id sequence);
  void look_for_leader(sequence_id sequence);
  void offer_prefix_of(sequence_id sequence);
  void serve_followers();
  void let_followers_look(sequence_id leader);
  void tell_prefix_changes();

  void lose_target();
  void tell_status(const actor::address& asks, bool with_details);
  [[nodiscard]] bool is_stalled() const;

  scheduler_options options_;
  kv::pool_size size_;
  kv::cache memory_;
  scheduler::run_queue queue_;
  scheduler::prefix_followers followers_;
  sequence_clients clients_;
  shared_grammars grammars_;
  actor::offload work_;
  std::unordered_map<sequence_id, std::vector<asked_round>> compiling_;  // rounds whose grammar is being compiled
  pass_statistics statistics_;
  actor::actor_ref<target_model> target_;

  bool is_pass_out_ = false;    // whether a pass is with the target model;
  scheduler::batch_plan plan_;  // its plan,
  std::uint64_t batch_;         // its number,
  bool has_moves_ = false;      // whether tokens are copied before it,
  instant sent_at_;             // and when it was sent
  bool target_up_ = false;
  std::vector<actor::address> wait_for_target_;  // asked for the status without it; notified when it is ready
  std::uint64_t target_start_id_ = 0;            // `start_id` of the latest target_ready
  instant target_lost_at_;
  std::optional<instant> replan_at_;  // when the next `replan` arrives

  kv::kept_list kept_;  // as reported to placers
  std::optional<instant> kept_at_;
  instant checked_{};
  std::uint64_t checked_count_ = 0;
  listener listener_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::cache_manager>;
