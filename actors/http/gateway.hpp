#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/http/completions.hpp"
#include "actors/http/edit_routes.hpp"
#include "actors/http/gateway_services.hpp"
#include "actors/http/http_replies.hpp"
#include "actors/http/readiness.hpp"
#include "actors/http/request/model_card.hpp"
#include "actors/http/status_watch.hpp"
#include "actors/messages/gateway_messages.hpp"
#include "actors/messages/http_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

/// Receives requests, authenticates them, finds the route and forwards them to the component that serves it:
/// `completions` for models' answers, `edit_routes` for edit sessions. The gateway serves the small routes itself.
class gateway final : public actor::actor_of<gateway> {
 public:
  using accepts =
      actor::protocol<http_arrived, http_closed, http_flow, session_admitted, session_text, session_finished,
                      scheduler_report, drain_gateway, cancel_everything, gateway_tick, answer_part_due, session_shown,
                      file_shown, call_done, call_refused, answer_started, edit_session_alive, edit_session_over,
                      actor::actor_down, actor::peer_state, actor::job_done, actor::undeliverable>;

  gateway(actor::actor_context& context, std::shared_ptr<const gateway_services> services);

  void on_start();
  void on(http_arrived&& m);
  void on(const http_closed& m);
  void on(const http_flow& m);
  void on(const session_admitted& m) { completions_.on(m); }
  void on(const session_text& m) { completions_.on(m); }
  void on(const session_finished& m) { completions_.on(m); }
  void on(const scheduler_report& m);
  void on(const drain_gateway& m);
  void on(const cancel_everything& m);
  void on(const gateway_tick& m);
  void on(const answer_part_due& m) { replies_.on(m); }
  void on(const session_shown& m) { edits_.on(m); }
  void on(const file_shown& m) { edits_.on(m); }
  void on(const call_done& m) { edits_.on(m); }
  void on(const call_refused& m) { edits_.on(m); }
  void on(const answer_started& m) { completions_.on(m); }
  void on(const edit_session_alive& m) { edits_.on(m); }
  void on(const edit_session_over& m) { edits_.on(m); }
  void on(const actor::actor_down& m);
  void on(const actor::peer_state& m);
  void on(const actor::job_done& m) { reader_.on(m); }
  void on(const actor::undeliverable& m);

 private:
  struct route;
  static const route routes[];

  struct destination {
    const route* found = nullptr;
    std::string_view path;  // path of the matching routes; empty if none matches
    std::string (*error_body)(const api::api_error&) = nullptr;
    std::string methods;  // methods that the path accepts
    std::vector<std::string> captures;
  };
  [[nodiscard]] destination find_route(const std::string& method, std::string_view path) const;
  [[nodiscard]] api::api_error no_such_path(const std::string& path) const;
  /// The reason to refuse the request. If there is none, `who` and `facts` name the caller's tenant afterwards.
  [[nodiscard]] std::optional<api::api_error> authenticate(const http_arrived& m, caller& who,
                                                           request_facts& facts) const;
  [[nodiscard]] std::optional<api::api_error> why_not_ready() const;
  [[nodiscard]] std::shared_ptr<trace::open_span> begin_span(const http_arrived& m, const request_facts& facts,
                                                             const std::string& request_id) const;
  void serve_front_page(const route_context& r);
  void serve_studio(const route_context& r, std::string_view name);
  void serve_status(const route_context& r);
  void tell_watchers(const scheduler_report& report);
  void serve_models(const route_context& r);
  void serve_model(const route_context& r);
  void serve_props(const route_context& r);
  void serve_slots(const route_context& r);
  void serve_ollama_model(const route_context& r);
  void serve_tokenize(const route_context& r);
  void serve_detokenize(const route_context& r);
  void serve_template(const route_context& r);
  void serve_health(const route_context& r);
  void serve_metrics(const route_context& r);
  template<class Read>
  void respond_read(const route_context& r, Read read);
  [[nodiscard]] std::vector<api::model_card> list_models() const;

  std::shared_ptr<const gateway_services> services_;
  readiness ready_;
  http_replies replies_;
  request_reader reader_;
  completions completions_;
  edit_routes edits_;
  status_watch watch_;
  std::uint64_t arrived_to_ = 0;        // the highest exchange read so far
  std::set<std::uint64_t> left_early_;  // higher exchanges whose clients have already left
  bool was_ready_ = false;
  bool drained_ = false;
  std::int64_t created_seconds_ = 0;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::gateway>;
