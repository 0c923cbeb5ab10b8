#pragma once

#include <memory>
#include <thread>

#include "actors/http/routing/key_ring.hpp"
#include "actors/messages/http_messages.hpp"
#include "runtime/actor/actor.hpp"
#include "runtime/actor/worker.hpp"
#include "transport/http_front.hpp"
#include "transport/zmq/zmq_fabric.hpp"

namespace redline::actors {

class gateway;

/// Runs the HTTP server on its own thread and turns its callbacks into messages to the gateway, and back.
class http_gate {
 public:
  /// Binds the port and starts serving. Requests go to `to` from the first one on. `supervisor`, which may be null,
  /// restarts the gate's actor. keys: their tenants share the requests in progress fairly if there are at least two.
  /// Null means that there are no keys.
  static result<std::unique_ptr<http_gate>> start(transport::zmq_fabric& fabric, std::uint16_t worker_number,
                                                  std::uint32_t actor_number,
                                                  const transport::http_front::options& options,
                                                  actor::actor_ref<gateway> to, actor::address supervisor = {},
                                                  std::shared_ptr<const key_ring> keys = nullptr);
  ~http_gate();
  http_gate(const http_gate&) = delete;
  http_gate& operator=(const http_gate&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// True once every answer that was begun has reached its client, as far as can be known. Not valid after stop().
  [[nodiscard]] bool is_sent() const;
  /// Ends the thread and closes open connections.
  void stop();

 private:
  struct state;
  explicit http_gate(std::unique_ptr<state> s);
  std::unique_ptr<state> state_;
};

}  // namespace redline::actors
