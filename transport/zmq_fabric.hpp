#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/actor/link.hpp"
#include "runtime/base/size_limits.hpp"

namespace redline::transport {

/// CURVE keys as Z85 text (40 characters each).
struct curve_keys {
  std::string public_key;
  std::string secret_key;
};
/// A fresh key pair.
curve_keys make_curve_keys();

/// What a bridge asks of other processes before it believes them.
struct peer_rules {
  std::string hello;  // what this process says of itself, before anything else
  /// Whether a process that says `hello` of itself may take part. The failure is logged on both sides. Called on the
  /// bridge's thread; empty: all may.
  std::function<result<void>(std::uint16_t process, std::string_view hello)> check;
  /// Whether a process may send such messages. Empty: any.
  std::function<bool(std::uint16_t process, actor::message_id)> may_send;
};

/// How processes talk to each other. ipc:// endpoints rely on the file system's permissions; tcp:// needs CURVE keys
/// unless plaintext is asked for by name.
struct bridge_options {
  std::string listen;  // endpoint to bind, or empty
  std::string join;    // endpoint to dial, or empty
  bool insecure_plaintext = false;
  std::optional<curve_keys> own_keys;
  std::string server_public_key;                       // needed to join with CURVE
  std::vector<std::string> allowed_public_keys;        // who may join a CURVE listener
  std::map<std::string, std::uint16_t> key_processes;  // of these, keys that may be one process only
  peer_rules rules;
  std::uint32_t message_bytes_max = sizes::message_bytes_max;
  microseconds heartbeat{1'000'000};
  microseconds silence_max{5'000'000};  // then a peer counts as lost
};

/// The workers that a process will have, and whether it talks to other processes. All sockets between them are made
/// with the links: at first use there might be no descriptor left for one.
struct fabric_layout {
  std::vector<std::uint16_t> workers;
  bool has_bridge = false;
};

/// One process's ZeroMQ: a PULL socket per worker thread, PUSH sockets between them (`inproc`), and, when configured, a
/// bridge thread that carries frames to other processes over `ipc` or `tcp` and notices when a process comes or goes.
/// Two processes talk once each has taken the other's hello. A process that starts again under its number is another
/// one: nothing that was meant for the first reaches it, and while the first lives it is refused. Links are made before
/// their threads start; the fabric outlives them.
class zmq_fabric {
 public:
  explicit zmq_fabric(std::uint16_t process, fabric_layout layout = {});
  ~zmq_fabric();
  zmq_fabric(const zmq_fabric&) = delete;
  zmq_fabric& operator=(const zmq_fabric&) = delete;

  /// The link of worker `number`; each number once, all before any frame is sent.
  std::unique_ptr<actor::link> make_link(std::uint16_t number);

  /// Starts the bridge. `watchers` are told peer_state. Fails when an endpoint cannot be bound, is unsafe, or a key is
  /// bad.
  result<void> start_bridge(const bridge_options& options, std::vector<actor::address> watchers);
  /// The endpoint actually bound (a tcp port 0 or * becomes a number); empty without a listener.
  [[nodiscard]] std::string bound_endpoint() const;
  void stop_bridge();

  [[nodiscard]] std::uint16_t process() const;

 private:
  friend class zmq_link;
  struct state;
  std::unique_ptr<state> state_;
};

/// A file descriptor that becomes readable when `l`, made by a zmq_fabric, may have frames: for event loops of others.
/// Edge-triggered: after it fires, call receive() until it gives nothing.
int readable_descriptor(actor::link& l);

}  // namespace redline::transport
