#pragma once

#include <unordered_map>

#include "actors/messages/draft_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/draft/draft_engine.hpp"

namespace redline::actors {

/// Proposes tokens for many sessions: requests that arrive while a forward runs share the next one. Holds copies of the
/// sessions' logs and asks for what it lacks; may be killed and restarted at any time without changing a byte of any
/// answer.
class draft_model final : public actor::actor_of<draft_model> {
 public:
  using accepts = actor::protocol<propose, forget>;

  draft_model(actor::actor_context& context, std::unique_ptr<draft::draft_engine> engine);

  void on(const propose& m);
  void on(const forget& m);
  bool on_idle();

  [[nodiscard]] const draft::draft_engine& engine() const { return *engine_; }

 private:
  void send_answers();

  std::unique_ptr<draft::draft_engine> engine_;
  std::unordered_map<session_id, actor::address> askers_;  // of drafts that are not made yet
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::draft_model>;
