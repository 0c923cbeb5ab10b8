#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "actors/messages/session_messages.hpp"
#include "actors/serving/session.hpp"
#include "actors/serving/token_log.hpp"
#include "bench/studies/common/names.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::studies {

/// Asks a local client to open the sessions of its job queue, because the models are loaded.
struct begin_local {
  static constexpr actor::message_id id{0x0901};
  static constexpr std::string_view name = "begin_local";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// A study's stand-in for the gateway, which opens sessions in this process and forwards what they report. The
/// callbacks run on the io thread.
class local_client final : public actor::actor_of<local_client> {
 public:
  using accepts = actor::protocol<begin_local, session_admitted, session_text, session_finished>;

  struct job {
    token_log work;
    session_partners partners;
    std::function<void(const session_text&)> on_text;
    std::function<void(const session_finished&)> on_finished;
  };
  /// Takes jobs before `begin_local` is sent; their sessions have different numbers.
  class job_queue {
   public:
    void put(job next) {
      const std::scoped_lock lock(mutex_);
      waiting_.push_back(std::move(next));
    }
    std::vector<job> take() {
      const std::scoped_lock lock(mutex_);
      return std::exchange(waiting_, {});
    }

   private:
    std::mutex mutex_;
    std::vector<job> waiting_;
  };
  local_client(actor::actor_context& context, std::shared_ptr<job_queue> jobs)
      : actor_of(context), job_queue_(std::move(jobs)) {}

  void on(const begin_local&) {
    for (auto& next : job_queue_->take()) {
      next.partners.client = context().self();
      context().spawn<session>("session", {1024, 1024}, next.work, next.partners);
      const session_id session = next.work.spec().session;
      jobs_.emplace(session, std::move(next));
    }
  }
  void on(const session_admitted&) {}
  void on(const session_text& m) {
    if (const auto found = jobs_.find(m.session); found != jobs_.end()) found->second.on_text(m);
  }
  void on(const session_finished& m) {
    const auto found = jobs_.extract(m.session);
    if (!found.empty()) found.mapped().on_finished(m);
  }

 private:
  std::shared_ptr<job_queue> job_queue_;
  std::map<session_id, job> jobs_;
};

}  // namespace redline::studies
