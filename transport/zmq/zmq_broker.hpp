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

/// Where a broker listens and whom it lets in.
struct broker_options {
  std::vector<std::string> listens;  // endpoints tcp:// or ipc://
  bool insecure_plaintext = false;
  std::optional<curve_keys> own_keys;            // CURVE for tcp
  std::vector<std::string> allowed_public_keys;  // with own_keys: who may connect
  /// Of these, keys that prove one role only. A key that is not named proves any.
  std::map<std::string, std::uint8_t> key_roles;
  pool_rules rules;
  link_limits limits;
};

/// What a broker has done since it started.
struct broker_counts {
  std::uint64_t frames = 0;  // carried,
  std::uint64_t bytes = 0;
  std::uint64_t undelivered = 0;  // and given back to their senders
  std::uint64_t processes = 0;    // connected now
};

/// Carries frames between processes that dial in, and tells each of those that it may work with: a star. Keeps a
/// register of them and no truth: it can end at any time and begin again, and there may be several, which know nothing
/// of each other. A process is believed only what its connection proves: frames name their sender, and a sender is the
/// connection that said hello under that number, with the same key, in a role that its key allows. Whatever is not
/// delivered comes back to its sender as `undeliverable`.
class zmq_broker {
 public:
  /// context: null: its own.
  explicit zmq_broker(zmq::context_t* context = nullptr);
  ~zmq_broker();
  zmq_broker(const zmq_broker&) = delete;
  zmq_broker& operator=(const zmq_broker&) = delete;

  /// Fails when an endpoint cannot be bound or is unsafe. `inside`: also an inproc:// endpoint for this very process,
  /// which wants no keys; empty: none.
  result<void> start(const broker_options& options, const std::string& inside = {});
  /// The endpoints actually bound: a tcp port 0 or * becomes a number.
  [[nodiscard]] const std::vector<std::string>& bound_endpoints() const { return bound_; }
  [[nodiscard]] broker_counts counts() const;
  /// Tells everybody, and ends.
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
