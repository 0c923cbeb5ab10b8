#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "transport/zmq/pool_wire.hpp"
#include "transport/zmq/zmq_endpoint.hpp"

namespace zmq {
class context_t;
}

namespace redline::transport {

/// Where a broker listens and which clients it admits.
struct broker_options {
  std::vector<std::string> listens;  // endpoints tcp:// or ipc://
  bool insecure_plaintext = false;
  std::optional<curve_keys> own_keys;            // CURVE for tcp
  std::vector<std::string> allowed_public_keys;  // with own_keys: the keys that may connect
  /// The allowed keys that are limited to one role. A key that is not listed allows any role.
  std::map<std::string, std::uint8_t> key_roles;
  pool_rules rules;
  link_limits limits;
};

/// What a broker has done since it started.
struct broker_counts {
  std::uint64_t frames = 0;  // carried
  std::uint64_t bytes = 0;
  std::uint64_t undelivered = 0;  // returned to their senders
  std::uint64_t processes = 0;    // processes connected now
};

/// Carries frames between processes that connect to it, and notifies each of the processes that it may work with: a
/// star topology. It keeps a registry but no essential state: it can end and start again at any time, and there may be
/// several brokers that know nothing of each other. It trusts only what a connection proves: frames name their sender,
/// and the sender must be the connection that sent the hello for that number, with the same key, in a role that its key
/// allows. Undelivered frames come back to their sender as `undeliverable`.
class zmq_broker {
 public:
  /// context: if null, the broker makes its own.
  explicit zmq_broker(zmq::context_t* context = nullptr);
  ~zmq_broker();
  zmq_broker(const zmq_broker&) = delete;
  zmq_broker& operator=(const zmq_broker&) = delete;

  /// Fails if an endpoint cannot be bound or is unsafe. `inside`: an additional inproc:// endpoint for this process,
  /// which needs no keys; may be empty.
  result<void> start(const broker_options& options, const std::string& inside = {});
  /// The bound endpoints: a tcp port 0 or * becomes a number.
  [[nodiscard]] const std::vector<std::string>& bound_endpoints() const { return bound_; }
  [[nodiscard]] broker_counts counts() const;
  /// Notifies all processes, and ends.
  void stop();

 private:
  class router;
  std::unique_ptr<zmq::context_t> own_context_;
  zmq::context_t* context_;
  std::vector<int> locks_;
  std::vector<std::string> bound_;
  std::atomic<bool> running_{false};
  std::shared_ptr<router> router_;
  std::thread thread_;
};

}  // namespace redline::transport
