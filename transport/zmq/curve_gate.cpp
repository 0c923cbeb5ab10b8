#include "transport/zmq/curve_gate.hpp"

#include <chrono>
#include <string_view>
#include <zmq.hpp>

#include "transport/zmq/bridge_counts.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {
namespace {

constexpr const char* zap_endpoint = "inproc://zeromq.zap.01";

std::string z85(std::string_view key) {
  char text[41] = {};
  if (key.size() != 32) return {};
  zmq_z85_encode(text, reinterpret_cast<const std::uint8_t*>(key.data()), key.size());
  return text;
}

}  // namespace

curve_gate::curve_gate(zmq::context_t& context, std::vector<std::string> allowed_public_keys)
    : allowed_(allowed_public_keys.begin(), allowed_public_keys.end()), thread_([this, &context] { answer(context); }) {
  while (!bound_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

curve_gate::~curve_gate() {
  running_ = false;
  thread_.join();
}

// The ZAP request: version, request id, domain, address, identity, mechanism, then the 32-byte client key.
void curve_gate::answer(zmq::context_t& context) {
  zmq::socket_t socket(context, ZMQ_REP);
  socket.set(zmq::sockopt::linger, 0);
  socket.bind(zap_endpoint);
  bound_ = true;
  std::vector<zmq::message_t> parts;
  while (running_) {
    try {
      zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
      if (zmq::poll(&item, 1, std::chrono::milliseconds(50)) == 0) continue;
      parts.clear();
      do {
        zmq::message_t part;
        if (!socket.recv(part)) break;
        parts.push_back(std::move(part));
      } while (parts.back().more());
      const bool well_formed =
          parts.size() == 7 && view(parts[0]) == "1.0" && view(parts[2]) == domain && view(parts[5]) == "CURVE";
      const std::string key = well_formed ? z85(view(parts[6])) : std::string();
      const bool good = !key.empty() && allowed_.contains(key);
      if (!good) {
        note_refusal(bridge_refusal::key,
                     key.empty() ? "a peer without a CURVE key"
                                 : "the key " + key + " of " + std::string(view(parts[3])) +
                                       ", which is not among the allowed ones: put its .public file into peers.d in "
                                       "the --keys folder of this broker, and restart the broker");
      }
      const std::string_view user = good ? std::string_view(key) : std::string_view();
      const std::string_view request = parts.size() > 1 ? view(parts[1]) : std::string_view();
      for (const std::string_view field : {std::string_view("1.0"), request, std::string_view(good ? "200" : "400"),
                                           std::string_view(good ? "" : "this key is not allowed to connect"), user}) {
        socket.send(zmq::buffer(field), zmq::send_flags::sndmore);
      }
      socket.send(zmq::buffer(std::string_view()), zmq::send_flags::none);
    } catch (const zmq::error_t& e) {
      if (e.num() == ETERM) return;
    }
  }
}

}  // namespace redline::transport
