#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <zmq.hpp>

namespace redline::transport {

/// Hears of connections to a server socket that fail in their handshake, before a gate is asked, and notes them as
/// refusals of keys with what to do. libzmq closes those without a word, and their processes only say that nobody
/// answers.
class handshake_watch {
 public:
  /// socket: not yet bound; it outlives this. has_keys: it wants CURVE. Used on the socket's thread.
  handshake_watch(zmq::context_t& context, zmq::socket_t& socket, bool has_keys);
  ~handshake_watch();
  handshake_watch(const handshake_watch&) = delete;
  handshake_watch& operator=(const handshake_watch&) = delete;

  /// To be polled for input.
  [[nodiscard]] void* handle() { return events_.handle(); }
  /// Takes what there is.
  void read();

 private:
  void hear(std::uint16_t event, std::uint32_t value);

  [[nodiscard]] std::string describe(std::uint32_t error) const;

  void* watched_;  // the socket's handle
  zmq::socket_t events_;
  bool has_keys_;
  std::map<std::uint32_t, std::string> addresses_;  // hosts of connections, by descriptor
  std::string failed_;                              // what went wrong with the connection that is closed next
};

}  // namespace redline::transport
