#include "transport/zmq/handshake_watch.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/base/environment.hpp"
#include "transport/zmq/bridge_counts.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

constexpr int told = ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;

/// The address without the port, which differs with each attempt.
std::string address_of(int descriptor) {
  sockaddr_storage where{};
  socklen_t size = sizeof where;
  std::array<char, NI_MAXHOST> host{};
  auto* at = reinterpret_cast<sockaddr*>(&where);
  if (::getpeername(descriptor, at, &size) != 0) return {};
  if (::getnameinfo(at, size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) return {};
  return host.data();
}

}  // namespace

handshake_watch::handshake_watch(zmq::context_t& context, zmq::socket_t& socket, bool has_keys)
    : watched_(socket.handle()), events_(context, ZMQ_PAIR), has_keys_(has_keys) {
  const std::string endpoint = "inproc://handshakes-" + std::to_string(real_environment().random());
  if (zmq_socket_monitor(watched_, endpoint.c_str(), told) != 0) throw zmq::error_t();
  events_.set(zmq::sockopt::linger, 0);
  // With a limit, libzmq's thread would wait for queue space, and all connections with it.
  events_.set(zmq::sockopt::rcvhwm, 0);
  events_.connect(endpoint);
}

// No events may go to a closed socket: libzmq's thread would wait for another one.
handshake_watch::~handshake_watch() { zmq_socket_monitor(watched_, nullptr, 0); }

// An event consists of 16 bits for its kind and 32 for its value, in native byte order; then the socket's own address.
void handshake_watch::read() {
  std::vector<zmq::message_t> parts;
  while (receive_parts(events_, parts)) {
    if (parts.size() != 2 || parts[0].size() != 6) continue;
    std::uint16_t event = 0;
    std::uint32_t value = 0;
    std::memcpy(&event, parts[0].data(), sizeof event);
    std::memcpy(&value, parts[0].data<char>() + sizeof event, sizeof value);
    hear(event, value);
  }
}

std::string handshake_watch::describe(std::uint32_t error) const {
  if (error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC) {
    return "a peer that expects another key of this broker: copy this broker's server.public into the --keys folder of "
           "that process";
  }
  if (error != ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return "a peer that is not a process of a pool";
  return has_keys_ ? "a peer without keys: start its process with --keys"
                   : "a peer with keys, while this broker has none: start the broker with --keys";
}

// A failure is reported without its connection; the event that closes the connection comes next.
void handshake_watch::hear(std::uint16_t event, std::uint32_t value) {
  switch (event) {
    case ZMQ_EVENT_ACCEPTED:
      addresses_[value] = address_of(static_cast<int>(value));
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      failed_ = describe(value);
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      failed_.clear();  // the gate has logged it
      return;
    case ZMQ_EVENT_DISCONNECTED:
    case ZMQ_EVENT_CLOSED: {
      const auto found = addresses_.extract(value);
      if (failed_.empty()) return;
      const std::string from = found.empty() || found.mapped().empty() ? "" : " (from " + found.mapped() + ")";
      return note_refusal(bridge_refusal::key, std::exchange(failed_, {}) + from);
    }
    default:
      return;
  }
}

}  // namespace redline::transport
