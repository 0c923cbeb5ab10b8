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

/// The workers that a process will have, and whether it talks to other processes. All sockets between them are made
/// with the links: at first use there might be no descriptor left for one.
struct fabric_layout {
  std::vector<std::uint16_t> workers;
  bool has_bridge = false;
};

/// One process's ZeroMQ: a PULL socket per worker thread, PUSH sockets between them (`inproc`), and, when configured, a
/// bridge thread that carries frames to other processes through brokers and notices when a process comes or goes. A
/// process that starts again is another one: nothing that was meant for the first reaches it. Links are made before
/// their threads start; the fabric outlives them.
class zmq_fabric {
 public:
  explicit zmq_fabric(actor::process_number process, fabric_layout layout = {});
  ~zmq_fabric();
  zmq_fabric(const zmq_fabric&) = delete;
  zmq_fabric& operator=(const zmq_fabric&) = delete;

  /// The link of worker `number`; each number once, all before any frame is sent.
  std::unique_ptr<actor::link> make_link(std::uint16_t number);

  /// A broker in this process, which the bridge joins, too. Before start_bridge.
  result<void> start_broker(const broker_options& options);
  /// Starts the bridge. `watchers` are told peer_state. Fails when an endpoint is unsafe or a key is bad.
  result<void> start_bridge(bridge_options options, std::vector<actor::address> watchers);
  /// What this process says of itself has changed. From any thread.
  void update_card(const std::string& card);
  /// Has the bridge's watchers told of everybody who is here once more. From any thread.
  void tell_peers_again();
  /// Null without one.
  [[nodiscard]] const zmq_broker* broker() const;
  void stop_bridge();

  [[nodiscard]] actor::process_number process() const;

 private:
  friend class zmq_link;
  struct state;
  std::unique_ptr<state> state_;
};

/// A file descriptor that becomes readable when `l`, made by a zmq_fabric, may have frames: for event loops of others.
/// Edge-triggered: after it fires, call receive() until it gives nothing.
int readable_descriptor(actor::link& l);

}  // namespace redline::transport
