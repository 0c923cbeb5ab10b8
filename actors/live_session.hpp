#pragma once

#include <deque>
#include <string>
#include <vector>

#include "actors/live_workspace.hpp"
#include "actors/messages/live_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/actor/system_messages.hpp"

namespace redline::actors {

class verify_scheduler;

struct live_identity {
  session_id session;
  std::string name;  // as clients know it
  tenant_id tenant;
  std::string model;
  microseconds idle_max{0};
  actor::actor_ref<verify_scheduler> scheduler;
  actor::address gateway;
};

/// One client's editing session: owns its files, their versions, and the sequence whose KV holds them. Answers calls one
/// after the other; completions run in sessions of their own, to which the sequence is lent, one at a time: further ones
/// wait in order, while edits of the files do not. What the files are when a completion is asked for is what it reads.
/// Lives until it is closed or was left alone for `idle_max`.
class live_session final : public actor::actor_of<live_session> {
 public:
  using accepts = actor::protocol<live_call, live_withdraw, sequence_returned, verdict, run_pending, live_tick,
                                  actor::undeliverable>;

  live_session(actor::actor_context& context, live_identity who, live_workspace files);

  void on_start();
  void on(const live_call& m);
  void on(const live_withdraw& m);
  void on(const sequence_returned& m);
  void on(const verdict& m);
  void on(const run_pending& m);
  void on(const live_tick& m);
  void on(const actor::undeliverable& m);
  void on_stop();

 private:
  void show(const live_call& m, std::uint32_t status);
  void show_file(const live_call& m, bool with_text, std::uint32_t status = 200);
  void put_file(const live_call& m);
  void patch_file(const live_call& m);
  void drop_file(const live_call& m);
  void complete(const live_call& m);
  void edit(const live_call& m);
  void close(const live_call& m);

  void lend_to_next();
  void reply(std::uint64_t exchange, std::uint32_t status, const api::json& body);
  void refuse(std::uint64_t exchange, const api::api_error& why);

  live_identity who_;
  live_workspace files_;
  sequence_id sequence_;
  round_id round_{0};
  std::uint64_t lent_to_ = 0;           // exchange; 0: the sequence is here
  std::deque<live_prompt> waiting_;     // completions that wait for the sequence
  instant called_;
};

}  // namespace redline::actors
