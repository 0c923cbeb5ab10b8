#include "actors/http/http_gate.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <unordered_map>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/gateway.hpp"
#include "runtime/base/size_limits.hpp"

namespace redline::actors {

namespace {

std::vector<transport::http_header> to_headers(const header_list& list) {
  std::vector<transport::http_header> headers;
  for (const auto& [name, value] : list) headers.push_back({name, value});
  return headers;
}

/// What the client of a request that did not reach the gateway is told.
api::api_error explain(const failure& why) {
  if (why.code == errc::malformed_message) {
    return {413, "invalid_request_error", "The request is too large.", "", "request_too_large", {}};
  }
  auto error = api::error_of({errc::not_ready, ""});
  error.message = "The server cannot take the request now; try again shortly.";
  error.code = "overloaded";
  error.retry_after_seconds = 1;
  return error;
}

/// The server's end of the conversation with the gateway.
class http_actor final : public actor::actor_of<http_actor> {
 public:
  using accepts = actor::protocol<http_respond, http_body, http_stream, http_progress, http_hold, http_fail,
                                  http_forget, http_drain, actor::undeliverable>;

  http_actor(actor::actor_context& context, actor::actor_ref<gateway> to,
             const std::unique_ptr<transport::http_front>& front)
      : actor_of(context), gateway_(to), front_(front) {}

  // One that was restarted does not know which answers had begun.
  void on_start() {
    if (!front_) return;
    const auto why = explain({errc::unreachable, "the server's HTTP side was restarted"});
    front_->fail_all(why.status, api::error_body(why));
  }

  void arrived(transport::exchange_id id, transport::http_request&& r) {
    http_arrived m{
        .exchange = id.value, .method = std::move(r.method), .path = std::move(r.path), .body = std::move(r.body)};
    for (auto& h : r.headers) m.headers.emplace_back(std::move(h.name), std::move(h.value));
    context().tell(gateway_, m);
  }
  void closed(transport::exchange_id id) {
    unfinished_.erase(id.value);
    context().tell(gateway_, http_closed{id.value});
  }
  void flow(transport::exchange_id id, bool paused) { context().tell(gateway_, http_flow{id.value, paused}); }

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
    const auto why = explain({errc::unreachable, "the gateway was restarted"});
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
    if (m.what != http_arrived::id) return;  // the gateway is gone, and when it is back it says so (http_forget)
    const auto why = explain(m.why);
    front_->fail({m.about}, why.status, to_headers(api::error_headers(why)), api::error_body(why));
  }

 private:
  actor::actor_ref<gateway> gateway_;
  const std::unique_ptr<transport::http_front>& front_;         // null until the port is bound
  std::unordered_map<std::uint64_t, http_respond> unfinished_;  // answers of which parts are still to come
};

}  // namespace

struct http_gate::state {
  std::unique_ptr<actor::link> wire;
  std::unique_ptr<actor::worker> core;
  boost::asio::io_context io{1};
  std::unique_ptr<boost::asio::posix::stream_descriptor> readable;
  std::unique_ptr<transport::http_front> front;
  actor::actor_ref<http_actor> self;
  std::uint16_t port = 0;
  std::thread thread;

  /// What the front calls: while the actor is dead, nobody hears. An exception ends it, as in a handler.
  template<class Call>
  void with_actor(Call call) {
    http_actor* const alive = core->find(self);
    if (alive == nullptr) return;
    try {
      call(*alive);
    } catch (const std::exception& e) {
      log_line(log_level::error, "http", e.what());
      core->kill(self.where);
    }
  }

  // ZeroMQ's descriptor tells of a change, not of a state: everything is read before waiting again.
  void drain() {
    while (auto f = wire->receive()) core->deliver(std::move(*f));
    while (core->run_ready()) {
    }
    readable->async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
      if (!error) drain();
    });
  }
};

http_gate::http_gate(std::unique_ptr<state> s) : state_(std::move(s)) {}

http_gate::~http_gate() { stop(); }

result<std::unique_ptr<http_gate>> http_gate::start(transport::zmq_fabric& fabric, std::uint16_t worker_number,
                                                    std::uint32_t actor_number,
                                                    const transport::http_front::options& options,
                                                    actor::actor_ref<gateway> to, actor::address supervisor) {
  auto s = std::make_unique<state>();
  s->wire = fabric.make_link(worker_number);
  s->core = std::make_unique<actor::worker>(fabric.process(), worker_number, *s->wire, real_environment());
  s->core->report_deaths_to(supervisor);
  s->self = s->core->add<http_actor>(
      actor_number, "http", {1u << 16, 1u << 16},
      [to, &front = s->front](actor::actor_context& c) { return std::make_unique<http_actor>(c, to, front); });
  const transport::http_front::handlers handlers{
      .on_request = [raw = s.get()](
                        auto id,
                        auto request) { raw->with_actor([&](http_actor& a) { a.arrived(id, std::move(request)); }); },
      .on_closed = [raw = s.get()](auto id) { raw->with_actor([&](http_actor& a) { a.closed(id); }); },
      .on_flow = [raw = s.get()](auto id,
                                 bool paused) { raw->with_actor([&](http_actor& a) { a.flow(id, paused); }); }};
  REDLINE_TRY_ASSIGN(s->front, transport::http_front::listen(s->io, options, handlers));
  s->port = s->front->port();
  const int copy = ::dup(transport::readable_descriptor(*s->wire));
  if (copy < 0) return failure{errc::io_error, "cannot duplicate a descriptor"};
  s->readable = std::make_unique<boost::asio::posix::stream_descriptor>(s->io, copy);
  s->thread = std::thread([raw = s.get()] {
    pthread_setname_np(pthread_self(), "redline-http");
    raw->drain();
    raw->io.run();
  });
  return std::unique_ptr<http_gate>(new http_gate(std::move(s)));
}

std::uint16_t http_gate::port() const { return state_->port; }

bool http_gate::is_sent() const {
  std::promise<bool> answer;
  boost::asio::post(state_->io, [&] { answer.set_value(state_->front->busy_connections() == 0); });
  return answer.get_future().get();
}

void http_gate::stop() {
  if (!state_->thread.joinable()) return;
  boost::asio::post(state_->io, [s = state_.get()] {
    s->front->close_all();
    s->readable->close();
    s->io.stop();
  });
  state_->thread.join();
  state_->front.reset();
}

}  // namespace redline::actors
