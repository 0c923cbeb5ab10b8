#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/editing/edit_session.hpp"
#include "actors/http/completions.hpp"
#include "actors/http/gateway_services.hpp"
#include "actors/http/http_replies.hpp"
#include "actors/http/readiness.hpp"
#include "actors/http/request_reader.hpp"
#include "actors/http/shapes/openai/edit_request.hpp"
#include "actors/http/shapes/openai/edit_response.hpp"

namespace redline::actors {

/// Serves the calls of edit sessions: opens sessions, records their owners, and forwards calls to them. A part of the
/// gateway. The first capture of each route except `open` is the session's id; the second is a file's path.
class edit_routes {
 public:
  edit_routes(actor::actor_context& context, std::shared_ptr<const gateway_services> services, const readiness& ready,
              http_replies& replies, request_reader& reader, completions& answers);

  void open(const route_context& r);
  void show(const route_context& r);
  void close(const route_context& r);
  void complete(const route_context& r);
  void edit(const route_context& r);
  void show_file(const route_context& r);
  void put_file(const route_context& r);
  void patch_file(const route_context& r);
  void drop_file(const route_context& r);

  void on(const session_shown& m);
  void on(const file_shown& m);
  void on(const call_done& m);
  void on(const call_refused& m);
  void on(const edit_session_alive& m);
  void on(const edit_session_over& m);
  /// False if there was no such edit session.
  bool session_died(actor::address where);
  /// False if no call has this exchange.
  bool client_left(std::uint64_t exchange) { return calls_.erase(exchange) > 0; }

  [[nodiscard]] bool idle() const { return calls_.empty(); }
  [[nodiscard]] std::size_t sessions_count() const { return sessions_.size(); }

 private:
  struct open_session {
    actor::actor_ref<edit_session> where;
    tenant_id tenant;
    std::shared_ptr<const served_model> model;
    api::session_card card;
  };
  /// A call that its session has not answered yet. `completions` keeps the calls that generate text.
  struct call {
    caller who;
    session_id session;
    bool opens = false;
  };

  /// The caller's session of that name. If there is none, refuses the request and returns null.
  open_session* find(const caller& who, const std::string& name);
  open_session* find(const route_context& r) { return find(r.who, r.captures.front()); }
  [[nodiscard]] std::optional<api::api_error> room_for(tenant_id tenant) const;
  /// Runs `parse(body)` on another thread, then calls `then(session, parsed)`.
  template<class Parse, class Then>
  void read_for_session(const route_context& r, Parse parse, Then then);
  template<class M>
  void pass_on(const caller& who, const open_session& to, edit_verb verb, M message);
  /// Gives the request to `completions` and the message to the edit session that starts the answer.
  template<class M>
  void pass_on_generation(const caller& who, const open_session& to, edit_verb verb, M message, expected_answer how);
  void open_with(const caller& who, const api::open_session_request& parsed, std::shared_ptr<const served_model> model,
                 workspace files);
  /// Ends the call. Returns nullopt if its client has left.
  std::optional<call> take(std::uint64_t exchange);

  actor::actor_context& context_;
  const std::shared_ptr<const gateway_services> services_;
  const readiness& ready_;
  http_replies& replies_;
  request_reader& reader_;
  completions& answers_;
  std::unordered_map<session_id, open_session> sessions_;
  std::unordered_map<std::uint64_t, call> calls_;  // keyed by exchange
};

}  // namespace redline::actors
