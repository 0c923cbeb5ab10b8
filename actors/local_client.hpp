#pragma once

#include <functional>

#include "actors/generation.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/session.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

/// Tells a local client to open its session: the models are loaded.
struct begin_local {
  static constexpr actor::message_id id{0x0901};
  static constexpr std::string_view name = "begin_local";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The command line's stand-in for the gateway: opens one session in this process and hands on what it says. The
/// callbacks run on the io thread.
class local_client final : public actor::actor_of<local_client> {
 public:
  using accepts = actor::protocol<begin_local, session_text, session_finished>;

  struct job {
    generation work;
    session_partners partners;
    std::function<void(const session_text&)> on_text;
    std::function<void(const session_finished&)> on_finished;
  };
  local_client(actor::actor_context& context, std::shared_ptr<job> work) : actor_of(context), job_(std::move(work)) {}

  void on(const begin_local&) {
    auto partners = job_->partners;
    partners.client = context().self();
    context().spawn<session>("session", {1024, 1024}, job_->work, partners);
  }
  void on(const session_text& m) { job_->on_text(m); }
  void on(const session_finished& m) { job_->on_finished(m); }

 private:
  std::shared_ptr<job> job_;
};

}  // namespace redline::actors
