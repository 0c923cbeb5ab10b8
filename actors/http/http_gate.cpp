#include "actors/http/http_gate.hpp"

#include <pthread.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <future>

#include "actors/http/http_actor.hpp"

namespace redline::actors {

using gate_actor = http_actor<transport::http_front>;

struct http_gate::state {
  std::unique_ptr<actor::link> wire;
  std::unique_ptr<actor::worker> core;
  boost::asio::io_context io{1};
  std::unique_ptr<boost::asio::posix::stream_descriptor> readable;
  std::unique_ptr<transport::http_front> front;
  actor::actor_ref<gate_actor> self;
  std::uint16_t port = 0;
  std::thread thread;

  // ZeroMQ's descriptor is edge-triggered, so everything is read before waiting again.
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
                                                    actor::actor_ref<gateway> to, actor::address supervisor,
                                                    std::shared_ptr<const key_ring> keys) {
  auto s = std::make_unique<state>();
  s->wire = fabric.make_link(worker_number);
  s->core = std::make_unique<actor::worker>(fabric.process(), worker_number, *s->wire, real_environment());
  s->core->report_deaths_to(supervisor);
  s->self = s->core->add<gate_actor>(
      actor_number, "http", {1u << 16, 1u << 16},
      [to, &front = s->front](actor::actor_context& c) { return std::make_unique<gate_actor>(c, to, front); });
  // While the actor is dead, calls are dropped. A restarted actor ends the open exchanges.
  const auto with_actor = [raw = s.get()](auto call) { call_actor(*raw->core, raw->self, call); };
  transport::http_front::handlers handlers{
      .on_request = [with_actor](
                        auto id,
                        auto request) { with_actor([&](gate_actor& a) { a.arrived(id, std::move(request)); }); },
      .on_closed = [with_actor](auto id) { with_actor([&](gate_actor& a) { a.closed(id); }); },
      .on_flow = [with_actor](auto id, bool paused) { with_actor([&](gate_actor& a) { a.flow(id, paused); }); }};
  if (keys != nullptr) {
    handlers.owner_of = [keys](const transport::http_front::header_finder& header) -> std::uint64_t {
      const auto now = keys->snapshot();
      if (now->tenants_count() < 2) return 0;
      const auto key = shown_key(header);
      const auto owner = key ? now->find(*key) : std::nullopt;
      return owner ? owner->tenant.value : 0;
    };
  }
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
