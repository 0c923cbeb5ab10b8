#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "actors/editing/kv_estimate.hpp"
#include "actors/editing/workspace.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

class verify_scheduler;

struct edit_identity {
  session_id session;
  std::string name;  // as clients know it
  tenant_id tenant;
  std::string model;
  microseconds idle_max{0};
  api::cache_request cache;
  actor::actor_ref<verify_scheduler> scheduler;
  actor::address gateway;
};

/// One client's editing session: owns its files, their versions, and the sequence whose KV holds them. Answers calls
/// one after the other; completions run in sessions of their own, which borrow the sequence, one at a time: further
/// ones wait in order, while edits of the files do not. What the files are when a completion is asked for is what it
/// reads.
///
/// After each edit the KV is brought up to date for the completion that is expected next. Under a policy that keeps KV
/// which was computed for an older text, a second sequence is then computed from the beginning when the target model
/// has nothing else to do, and takes the first one's place: from there on answers are those of `exact`.
///
/// Lives until it is closed or was left alone for `idle_max`.
class edit_session final : public actor::actor_of<edit_session> {
 public:
  using accepts = actor::protocol<edit_call, edit_withdraw, sequence_returned, verdict, run_pending, edit_session_tick,
                                  actor::undeliverable>;

  edit_session(actor::actor_context& context, edit_identity who, workspace files);

  void on_start();
  void on(const edit_call& m);
  void on(const edit_withdraw& m);
  void on(const sequence_returned& m);
  void on(const verdict& m);
  void on(const run_pending& m);
  void on(const edit_session_tick& m);
  void on(const actor::undeliverable& m);
  void on_stop();

 private:
  void show(const edit_call& m, std::uint32_t status);
  void show_file(const edit_call& m, bool with_text, std::uint32_t status = 200);
  void put_file(const edit_call& m);
  void patch_file(const edit_call& m);
  void drop_file(const edit_call& m);
  void complete(const edit_call& m);
  void edit(const edit_call& m);
  void close(const edit_call& m);

  void lend_to_next();
  /// While nobody has the sequence: prepares it for what is expected next.
  void prepare();
  void heal();
  void take_healed();
  void tell_scheduler(sequence_id sequence, round_id round, const std::vector<token>& log,
                      std::vector<log_splice> splices = {});
  void remind_scheduler();
  void reply(std::uint64_t exchange, std::uint32_t status, const api::json& body);
  void refuse(std::uint64_t exchange, const api::api_error& why);

  /// A sequence that is computed from the beginning.
  struct healing {
    sequence_id sequence;
    round_id round{0};
    std::vector<token> log;
    bool done = false;
  };

  edit_identity who_;
  workspace files_;
  kv_estimate cache_;
  sequence_id sequence_;
  round_id round_{0};
  std::uint64_t borrowed_by_ = 0;         // exchange; 0: the sequence is here
  std::deque<edit_prompt_made> waiting_;  // completions that wait for the sequence
  bool preparing_ = false;                // round_ has been asked for and not answered
  std::optional<healing> healing_;
  std::uint64_t healed_count_ = 0;
  instant called_;
  instant asked_;  // when the scheduler last heard of the sequence
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::edit_session>;
