#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <zmq.hpp>

namespace redline::transport {

/// Watches a server socket for connections that fail in their handshake, before a gate is asked, and notes them as
/// refused keys with advice. libzmq closes them silently, and the processes at the other end see only that nothing
/// answers.
class handshake_watch {
 public:
  /// The socket must not be bound yet and must outlive this object. has_keys: it requires CURVE. Used on the socket's
  /// thread.
  handshake_watch(zmq::context_t& context, zmq::socket_t& socket, bool has_keys);
  ~handshake_watch();
  handshake_watch(const handshake_watch&) = delete;
  handshake_watch& operator=(const handshake_watch&) = delete;

  /// The handle to poll for input.
  [[nodiscard]] void* handle() { return events_.handle(); }
  /// Takes the events that have arrived.
  void read();

 private:
  void hear(std::uint16_t event, std::uint32_t value);

  [[nodiscard]] std::string describe(std::uint32_t error) const;

  void* watched_;  // the socket's handle
  zmq::socket_t events_;
  bool has_keys_;
  std::map<std::uint32_t, std::string> addresses_;  // hosts of connections, by descriptor
  std::string failed_;                              // what failed on the connection that is closed next
};

}  // namespace redline::transport
