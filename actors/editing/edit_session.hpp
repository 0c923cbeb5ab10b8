#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/editing/kv_estimate.hpp"
#include "actors/editing/workspace.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "actors/prompts/prompt_builder.hpp"
#include "actors/serving/answer_factory.hpp"
#include "runtime/actor/offload.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

class session;
class placer;
class cache_manager;

struct edit_session_options {
  session_id session;
  tenant_id tenant;
  microseconds idle_max{0};
  kv::splice_policy policy = kv::splice_policy::exact;  // what becomes of the KV after an edit
  bool heals = true;                                    // inexact KV is computed again in idle time
  std::shared_ptr<const answer_factory> answers;
  std::shared_ptr<const prompt_builder> prompts;
  std::shared_ptr<actor::thread_pool> pool;  // works on the files; if null, the session's own thread does
  actor::actor_ref<actors::placer> placer;   // if null, `manager` is used for good
  std::uint64_t model = 0;                   // for the placer: digest of the target model's file
  actor::actor_ref<cache_manager> manager;
  actor::address client;       // receives the answers to calls, and the text of completions
  edit_memory::claim waiting;  // counts the waiting calls
};

/// One client's editing session: owns its files, their versions, and the sequence with their KV. Answers calls one
/// after another; work that takes longer for longer files is done on other threads. Each completion runs in a session
/// of its own, which borrows the sequence. Only one can have it, so further completions wait in order, while edits of
/// the files do not wait. A completion reads the files as they were when it was asked for.
///
/// After each edit the KV is brought up to date for the completion that is expected next. A policy may keep KV that was
/// computed for an older text. Then a second sequence is computed from the beginning when the target model has nothing
/// else to do, and replaces the first: from there on answers are those of `exact`.
///
/// Lives until it is closed or gets no call for `idle_max`.
class edit_session final : public actor::actor_of<edit_session> {
 public:
  using accepts =
      actor::protocol<show_session, show_file, put_file, patch_file, drop_file, complete_text, edit_file, close_session,
                      withdraw_call, sequence_returned, prefilled, log_needed, refused, run_pending, session_placed,
                      no_place, edit_session_tick, actor::job_done, actor::undeliverable>;

  edit_session(actor::actor_context& context, edit_session_options options, workspace files);

  void on_start();
  void on(const show_session& m);
  void on(const show_file& m);
  void on(const put_file& m);
  void on(const patch_file& m);
  void on(const drop_file& m);
  void on(const complete_text& m);
  void on(const edit_file& m);
  void on(const close_session& m);
  void on(const withdraw_call& m);
  void on(const sequence_returned& m);
  void on(const prefilled& m);
  void on(const log_needed& m);
  void on(const refused& m);
  void on(const run_pending& m);
  void on(const place_session& m);
  void on(const session_placed& m);
  void on(const no_place& m);
  void on(const edit_session_tick& m);
  void on(const actor::job_done& m) { work_.on(m); }
  void on(const actor::undeliverable& m);
  void on_stop();

 private:
  /// A completion that waits for the sequence.
  struct completion {
    std::uint64_t exchange = 0;
    std::vector<token> prompt;
    std::vector<token> behind;  // what follows the prompt in the file
    answer_terms spec;
    std::shared_ptr<const output_rules> rules;
    std::size_t bytes = 0;
  };
  /// A call that waits for the files.
  struct waiting_call {
    std::uint64_t exchange = 0;
    std::function<void()> run;
    std::size_t bytes = 0;
  };
  /// The outcome of a change of the files.
  struct changed_files {
    file_shown shown;
    std::optional<workspace::layout> next;  // what the model is expected to read next
  };
  /// The session that has the sequence.
  struct borrower {
    std::uint64_t exchange = 0;
    actor::actor_ref<session> where;
  };
  /// A sequence that is computed from the beginning.
  struct healing {
    sequence_id sequence;
    round_id round{0};
    std::vector<token> log;
    bool done = false;
  };

  /// Runs `call` when nothing works on the files and the calls before it are done. m: the client's message, whose bytes
  /// count while it waits.
  template<class M>
  void in_turn(const M& m, std::function<void()> call);
  void in_turn(std::uint64_t exchange, const std::function<std::size_t()>& bytes, std::function<void()> call);
  /// Counts more waiting bytes, or refuses the call; `give_back` uncounts them.
  [[nodiscard]] bool hold(std::uint64_t exchange, std::size_t bytes);
  void give_back(std::size_t bytes);
  /// Runs `job(files)` on another thread, then `then(its result)` here; calls wait until then. job: returns an outcome
  /// whose error is the client's refusal. exchange: 0 when no client waits.
  template<class Job, class Then>
  void work_on_files(std::uint64_t exchange, std::size_t bytes, Job job, Then then);
  void change_files(std::uint64_t exchange, std::size_t bytes,
                    std::function<outcome<file_shown, refusal>(workspace&)> change);
  void call_next();
  void lend_to_next();
  void lend(completion next);
  void take_back();
  /// Prepares the sequence, unless it is lent, for the completion that is expected next.
  void prepare();
  void prepare(std::optional<workspace::layout> next);
  void heal();
  void take_healed();
  void prefill(sequence_id sequence, round_id number, std::span<const token> log,
               std::vector<scheduler::log_splice> splices = {});
  void repeat_prefill();
  void ask_for_place(actor::process_number not_process);
  /// Starts an answer's session and tells the client its address.
  actor::actor_ref<session> spawn_answer(std::uint64_t exchange, session_id id, answer_factory::answer answer);
  void refuse(std::uint64_t exchange, refusal why);

  edit_session_options options_;
  actor::actor_ref<draft_model> drafter_;  // the one that the placer named
  numerics_id numerics_;                   // numerics of the worker that it named
  actor::offload work_;
  std::shared_ptr<workspace> files_;  // used by another thread while `busy_`
  bool busy_ = false;
  std::deque<waiting_call> calls_;
  std::size_t waiting_bytes_ = 0;  // sum over calls_ and waiting_
  kv_estimate kv_;
  sequence_id sequence_;
  round_id round_{0};
  std::optional<borrower> borrower_;
  std::deque<completion> waiting_;
  bool preparing_ = false;  // round_ has been asked for and not answered
  std::optional<healing> healing_;
  std::uint64_t healed_count_ = 0;
  instant called_;
  instant shown_;  // when the client was last sent edit_session_alive
  instant asked_;  // when the cache manager was last asked about the sequence
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::edit_session>;
