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
  std::string replay_endpoint;  // where they ask for what they missed; empty: nowhere
  std::string topic;
  bool insecure_plaintext = false;  // tcp has no keys here: the readers there are know none
  std::size_t kept_max = 10'000;    // messages that can be asked for again,
  std::size_t kept_bytes_max = std::size_t{64} << 20;
  int queue_max = 1024;  // messages that wait for one slow subscriber; later ones it misses
};

/// Publishes numbered messages, and gives the last ones again: the scheme by which vLLM tells of its cache
/// (vllm/distributed/kv_events.py). Subscribers (SUB) get [topic, number, payload], the number as 8 bytes, big-endian,
/// from 0. Whoever misses some sends a number to the replay endpoint (REQ or DEALER to a ROUTER) and gets
/// [number, payload] of all kept ones from there on, then number -1 without payload. Nothing waits for a reader.
class zmq_publisher {
 public:
  /// Fails when an endpoint is unsafe or cannot be bound.
  static result<std::unique_ptr<zmq_publisher>> start(publisher_options options);
  ~zmq_publisher();
  zmq_publisher(const zmq_publisher&) = delete;
  zmq_publisher& operator=(const zmq_publisher&) = delete;

  /// From one thread. A message for which the queue has no room leaves a gap in the numbers.
  void publish(std::string_view payload);
  /// As bound: a tcp port * is a number there.
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
  zmq::socket_t outbox_, inbox_;  // from the publishing thread to that of the sockets
  zmq::socket_t subscribers_, replays_;
  std::string bound_, replay_bound_;
  std::deque<int> locks_;
  std::uint64_t next_ = 0;  // of the publishing thread
  std::deque<kept_message> kept_;
  std::size_t kept_bytes_ = 0;
  std::atomic<bool> running_{true};
  std::thread thread_;
};

}  // namespace redline::transport
