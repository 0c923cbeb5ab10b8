#pragma once

#include <unordered_map>

#include "actors/messages/draft_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/draft/small_model_runner.hpp"
#include "runtime/trace/tracer.hpp"

namespace redline::actors {

/// Proposes tokens for many sessions: requests that arrive during a pass share the next one. Keeps copies of the
/// sessions' logs and asks for what it lacks. May be killed and restarted at any time without changing a byte of any
/// answer.
class draft_model final : public actor::actor_of<draft_model> {
 public:
  using accepts = actor::protocol<propose, forget>;

  /// tracer: nothing is traced if null.
  draft_model(actor::actor_context& context, std::unique_ptr<draft::small_model_runner> runner,
              std::shared_ptr<trace::tracer> tracer = nullptr);

  void on(const propose& m);
  void on(const forget& m);
  bool on_idle();

  [[nodiscard]] const draft::small_model_runner& runner() const { return *runner_; }

 private:
  /// The trace of a session's drafts.
  struct traced_session {
    trace::open_span span;
    std::int64_t rounds = 0, passes = 0, tokens = 0;
  };

  void send_answers();
  void end_trace(session_id session);

  std::unique_ptr<draft::small_model_runner> runner_;
  std::shared_ptr<trace::tracer> tracer_;
  static constexpr std::size_t traced_max = 4096;
  std::unordered_map<session_id, traced_session> traced_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::draft_model>;
