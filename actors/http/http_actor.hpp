#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/gateway.hpp"
#include "actors/messages/http_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/size_limits.hpp"
#include "transport/http_front.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {

std::vector<transport::http_header> to_headers(const header_list& list);
/// The error for the client of a request that did not reach the gateway.
api::api_error explain_loss(const failure& why);

/// The server's side of the conversation with the gateway. Front is transport::http_front or a test's replacement.
/// Lives on the front's thread, which calls arrived, closed and flow.
template<class Front>
class http_actor final : public actor::actor_of<http_actor<Front>> {
 public:
  using accepts = actor::protocol<http_respond, http_body, http_stream, http_progress, http_hold, http_fail,
                                  http_forget, http_drain, actor::undeliverable>;

  /// front: null until the port is bound.
  http_actor(actor::actor_context& context, actor::actor_ref<gateway> to, const std::unique_ptr<Front>& front)
      : actor::actor_of<http_actor>(context), gateway_(to), front_(front) {}

  // After a restart the actor does not know which answers had begun.
  void on_start() {
    if (!front_) return;
    const auto why = explain_loss({errc::unreachable, "the server's HTTP side was restarted"});
    front_->fail_all(why.status, api::error_body(why));
  }

  void arrived(transport::exchange_id id, transport::http_request&& r) {
    http_arrived m{
        .exchange = id.value, .method = std::move(r.method), .path = std::move(r.path), .body = std::move(r.body)};
    for (auto& h : r.headers) m.headers.emplace_back(std::move(h.name), std::move(h.value));
    this->context().tell(gateway_, m);
  }
  void closed(transport::exchange_id id) {
    unfinished_.erase(id.value);
    this->context().tell(gateway_, http_closed{id.value});
  }
  void flow(transport::exchange_id id, bool paused) { this->context().tell(gateway_, http_flow{id.value, paused}); }

  void on(const http_respond& m) {
    if (m.more) {
      auto& begun = unfinished_[m.exchange] = m;
      begun.body.reserve(std::min(m.whole_bytes, sizes::http_answer_bytes_max));
      front_->note_progress({m.exchange});
    } else {
      front_->respond({m.exchange}, m.status, to_headers(m.headers), m.body);
    }
  }
  void on(const http_body& m) {
    const auto at = unfinished_.find(m.exchange);
    if (at == unfinished_.end()) return;  // the client left, or a part was lost
    at->second.body += m.data;
    if (m.more) return;
    http_respond whole = std::move(at->second);
    unfinished_.erase(at);
    front_->respond({m.exchange}, whole.status, to_headers(whole.headers), std::move(whole.body));
  }
  void on(const http_progress& m) { front_->note_progress({m.exchange}); }
  void on(const http_hold& m) { front_->hold_open({m.exchange}, to_headers(m.headers)); }
  void on(const http_fail& m) {
    unfinished_.erase(m.exchange);
    front_->fail({m.exchange}, m.status, {}, m.error);
  }
  void on(const http_forget&) {
    const auto why = explain_loss({errc::unreachable, "the gateway was restarted"});
    front_->fail_all(why.status, api::error_body(why));
  }
  void on(const http_stream& m) {
    const transport::exchange_id id{m.exchange};
    if (m.begin) front_->begin_stream(id, 200, to_headers(m.headers));
    if (!m.data.empty()) front_->write(id, m.data);
    if (m.end) front_->end_stream(id);
  }
  void on(const http_drain&) { front_->drain(); }
  void on(const actor::undeliverable& m) {
    if (m.what != http_arrived::id) return;  // a gateway that comes back sends http_forget
    const auto why = explain_loss(m.why);
    front_->fail({m.about}, why.status, to_headers(api::error_headers(why)), api::error_body(why));
  }

 private:
  actor::actor_ref<gateway> gateway_;
  const std::unique_ptr<Front>& front_;
  std::unordered_map<std::uint64_t, http_respond> unfinished_;  // answers with parts still to come
};

/// Runs the front's call on the actor. Does nothing if that is dead. An exception ends the actor, as in a handler.
template<class Actor, class Call>
void call_actor(actor::worker& core, actor::actor_ref<Actor> who, Call call) {
  Actor* const alive = core.find(who);
  if (alive == nullptr) return;
  try {
    call(*alive);
  } catch (const std::exception& e) {
    log_line(log_level::error, "http", e.what());
    core.kill(who.where);
  }
}

}  // namespace redline::actors
