#pragma once

#include <functional>
#include <memory>
#include <mutex>

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

/// The command line's stand-in for the gateway: opens sessions in this process, one after the other, and hands on what
/// they say. The callbacks run on the io thread.
class local_client final : public actor::actor_of<local_client> {
 public:
  using accepts = actor::protocol<begin_local, session_text, session_finished>;

  struct job {
    generation work;
    session_partners partners;
    std::function<void(const session_text&)> on_text;
    std::function<void(const session_finished&)> on_finished;
  };
  /// Where the next job is put before `begin_local` is sent.
  class desk {
   public:
    void put(std::shared_ptr<job> next) {
      const std::scoped_lock lock(mutex_);
      next_ = std::move(next);
    }
    std::shared_ptr<job> take() {
      const std::scoped_lock lock(mutex_);
      return std::move(next_);
    }

   private:
    std::mutex mutex_;
    std::shared_ptr<job> next_;
  };
  local_client(actor::actor_context& context, std::shared_ptr<desk> jobs) : actor_of(context), desk_(std::move(jobs)) {}

  void on(const begin_local&) {
    job_ = desk_->take();
    if (!job_) return;
    auto partners = job_->partners;
    partners.client = context().self();
    context().spawn<session>("session", {1024, 1024}, job_->work, partners);
  }
  void on(const session_text& m) { job_->on_text(m); }
  void on(const session_finished& m) { job_->on_finished(m); }

 private:
  std::shared_ptr<desk> desk_;
  std::shared_ptr<job> job_;
};

}  // namespace redline::actors
