#include "transport/zmq/zmq_parts.hpp"

#include "runtime/actor/codec.hpp"
#include "runtime/base/size_limits.hpp"

namespace redline::transport {

std::string_view view(const zmq::message_t& m) { return {static_cast<const char*>(m.data()), m.size()}; }

bool receive_parts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
  parts.clear();
  do {
    zmq::message_t part;
    if (!socket.recv(part, parts.empty() ? zmq::recv_flags::dontwait : zmq::recv_flags::none)) return false;
    parts.push_back(std::move(part));
  } while (parts.back().more());
  return true;
}

bool send_parts(zmq::socket_t& socket, std::string_view first, std::string_view second) {
  if (!socket.send(zmq::buffer(first), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  return socket.send(zmq::buffer(second), zmq::send_flags::dontwait).has_value();
}

std::optional<actor::envelope> read_envelope(std::string_view bytes) {
  if (bytes.size() > sizes::envelope_bytes_max) return std::nullopt;
  auto head = actor::decode<actor::envelope>(bytes);
  if (!head || head->version != actor::wire_version) return std::nullopt;
  return std::move(*head);
}

}  // namespace redline::transport
