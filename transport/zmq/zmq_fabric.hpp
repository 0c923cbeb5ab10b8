#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/actor/link.hpp"

namespace redline::transport {

struct bridge_options;
struct broker_options;
class zmq_broker;

/// The workers that a process will have, and whether it communicates with other processes. All sockets between them are
/// made with the links, because at first use no descriptor might be left.
struct fabric_layout {
  std::vector<std::uint16_t> workers;
  bool has_bridge = false;
};

/// One process's ZeroMQ: a PULL socket per worker thread, PUSH sockets between them (`inproc`), and, if configured, a
/// bridge thread that carries frames to other processes through brokers and notices when a process joins or leaves. A
/// restarted process is a different one: nothing meant for the first reaches it. Links are made before their threads
/// start, and the fabric outlives them.
class zmq_fabric {
 public:
  explicit zmq_fabric(actor::process_number process, fabric_layout layout = {});
  ~zmq_fabric();
  zmq_fabric(const zmq_fabric&) = delete;
  zmq_fabric& operator=(const zmq_fabric&) = delete;

  /// Makes the link of worker `number`. Call it once per number, before any frame is sent.
  std::unique_ptr<actor::link> make_link(std::uint16_t number);

  /// Starts a broker in this process, which the bridge joins, too. Call it before start_bridge.
  result<void> start_broker(const broker_options& options);
  /// Starts the bridge. `watchers` receive peer_state. Fails if an endpoint is unsafe or a key is bad.
  result<void> start_bridge(bridge_options options, std::vector<actor::address> watchers);
  /// Publishes a change of this process's card. Thread-safe.
  void update_card(const std::string& card);
  /// Makes the bridge report all present processes to its watchers again. Thread-safe.
  void tell_peers_again();
  /// The broker, or null if there is none.
  [[nodiscard]] const zmq_broker* broker() const;
  void stop_bridge();

  [[nodiscard]] actor::process_number process() const;

 private:
  friend class zmq_link;
  struct state;
  std::unique_ptr<state> state_;
};

/// A file descriptor that becomes readable when `l`, made by a zmq_fabric, may have frames: for external event loops.
/// It is edge-triggered: after it fires, call receive() until that returns nothing.
int readable_descriptor(actor::link& l);

}  // namespace redline::transport
