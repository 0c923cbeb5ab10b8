#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <zmq.hpp>

#include "runtime/base/result.hpp"

namespace redline::transport {

struct publisher_options {
  std::string endpoint;         // tcp:// or ipc://, where subscribers connect
  std::string replay_endpoint;  // where they request missed messages; may be empty
  std::string topic;
  bool insecure_plaintext = false;  // tcp has no keys here: existing subscribers do not support any
  std::size_t kept_max = 10'000;    // stored messages that can be requested again
  std::size_t kept_bytes_max = std::size_t{64} << 20;
  int queue_max = 1024;  // messages that wait for one slow subscriber; it misses later ones
};

/// Publishes numbered messages, and repeats the last ones on request: vLLM's scheme for cache events
/// (vllm/distributed/kv_events.py). Subscribers (SUB) get [topic, number, payload], the number as 8 bytes, big-endian,
/// from 0. A subscriber that misses some sends a number to the replay endpoint (REQ or DEALER to a ROUTER) and gets
/// [number, payload] of all stored ones from there on, then number -1 without payload. Publishing never waits for a
/// reader.
class zmq_publisher {
 public:
  /// Fails if an endpoint is unsafe or cannot be bound.
  static result<std::unique_ptr<zmq_publisher>> start(publisher_options options);
  ~zmq_publisher();
  zmq_publisher(const zmq_publisher&) = delete;
  zmq_publisher& operator=(const zmq_publisher&) = delete;

  /// Call it from one thread. A message that does not fit into the queue leaves a gap in the numbers.
  void publish(std::string_view payload);
  /// The bound endpoints: a tcp port * becomes a number.
  [[nodiscard]] const std::string& endpoint() const { return bound_; }
  [[nodiscard]] const std::string& replay_endpoint() const { return replay_bound_; }

 private:
  struct kept_message {
    std::uint64_t number = 0;
    zmq::message_t payload;
  };

  explicit zmq_publisher(publisher_options options);
  result<void> bind();
  void run();
  void take_in();
  void replay();

  publisher_options options_;
  zmq::context_t context_{1};
  zmq::socket_t outbox_, inbox_;  // from the publishing thread to the socket thread
  zmq::socket_t subscribers_, replays_;
  std::string bound_, replay_bound_;
  std::deque<int> locks_;
  std::uint64_t next_ = 0;  // used by the publishing thread
  std::deque<kept_message> kept_;
  std::size_t kept_bytes_ = 0;
  std::atomic<bool> running_{true};
  std::thread thread_;
};

}  // namespace redline::transport
