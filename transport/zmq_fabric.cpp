#include "transport/zmq_fabric.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <zmq.hpp>

#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/undelivered.hpp"
#include "runtime/base/log.hpp"
#include "transport/curve_gate.hpp"

namespace redline::transport {

using actor::address;
using actor::envelope;
using actor::frame;

namespace {

// Frames that wait between two threads. Mailboxes are the real bound; this one catches a worker that hangs.
constexpr int inproc_frames_max = 65536;
constexpr int network_frames_max = 16384;

std::string worker_endpoint(std::uint16_t number) { return "inproc://worker-" + std::to_string(number); }
constexpr const char* bridge_endpoint = "inproc://bridge";

// ROUTER identities may not start with a zero byte.
std::string identity_of(std::uint16_t process) {
  return {'P', static_cast<char>(process >> 8), static_cast<char>(process & 0xff)};
}
std::optional<std::uint16_t> process_of_identity(std::string_view id) {
  if (id.size() != 3 || id[0] != 'P') return std::nullopt;
  return static_cast<std::uint16_t>((static_cast<unsigned char>(id[1]) << 8) | static_cast<unsigned char>(id[2]));
}

std::string_view view(const zmq::message_t& m) { return {static_cast<const char*>(m.data()), m.size()}; }

/// Receives one multipart message; false when none waits.
bool receive_parts(zmq::socket_t& socket, std::vector<zmq::message_t>& parts) {
  parts.clear();
  do {
    zmq::message_t part;
    if (!socket.recv(part, parts.empty() ? zmq::recv_flags::dontwait : zmq::recv_flags::none)) return false;
    parts.push_back(std::move(part));
  } while (parts.back().more());
  return true;
}

/// Sends envelope and body without waiting; a message goes whole or not at all.
bool send_parts(zmq::socket_t& socket, std::string_view first, std::string_view second) {
  if (!socket.send(zmq::buffer(first), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  return socket.send(zmq::buffer(second), zmq::send_flags::dontwait).has_value();
}

void note_dropped(const std::string& what) { log_line(log_level::debug, "fabric", "dropped " + what); }

std::optional<envelope> read_envelope(std::string_view bytes) {
  if (bytes.size() > sizes::envelope_bytes_max) return std::nullopt;
  auto head = actor::decode<envelope>(bytes);
  if (!head || head->version != actor::wire_version) return std::nullopt;
  return std::move(*head);
}

}  // namespace

/// A thread's sockets towards others, by endpoint.
class outlets {
 public:
  explicit outlets(zmq::context_t& context) : context_(context) {}

  zmq::socket_t& find(const std::string& endpoint) {
    auto it = sockets_.find(endpoint);
    if (it == sockets_.end()) {
      it = sockets_.emplace(endpoint, zmq::socket_t(context_, ZMQ_PUSH)).first;
      it->second.set(zmq::sockopt::sndhwm, inproc_frames_max);
      it->second.set(zmq::sockopt::linger, 0);
      it->second.connect(endpoint);
    }
    return it->second;
  }
  void open(const fabric_layout& layout) {
    for (const auto number : layout.workers) find(worker_endpoint(number));
  }

 private:
  zmq::context_t& context_;
  std::map<std::string, zmq::socket_t> sockets_;
};

struct zmq_fabric::state {
  std::uint16_t process = 0;
  fabric_layout layout;
  zmq::context_t context{1};
  /// By worker number; links may be made while others send.
  std::array<std::atomic<bool>, 256> workers{};
  std::unique_ptr<curve_gate> gate;
  std::string bound;
  std::atomic<bool> bridge_running{false};
  std::thread bridge_thread;
};

class zmq_link final : public actor::link {
 public:
  zmq_link(zmq_fabric::state& fabric, std::uint16_t number)
      : fabric_(fabric), inbox_(fabric.context, ZMQ_PULL), outlets_(fabric.context) {
    inbox_.set(zmq::sockopt::rcvhwm, inproc_frames_max);
    inbox_.set(zmq::sockopt::linger, 0);
    inbox_.bind(worker_endpoint(number));
    outlets_.open(fabric.layout);
    if (fabric.layout.has_bridge) outlets_.find(bridge_endpoint);
  }

  result<void> send(const frame& f) override try {
    const std::uint16_t process = actor::process_of(f.head.to);
    std::string endpoint;
    if (process == fabric_.process) {
      const std::uint16_t number = actor::worker_of(f.head.to);
      if (number >= fabric_.workers.size() || !fabric_.workers[number]) {
        return failure{errc::unreachable, "no worker " + std::to_string(number) + " in this process"};
      }
      endpoint = worker_endpoint(number);
    } else {
      if (!fabric_.bridge_running) {
        return failure{errc::unreachable, "no bridge leads to process " + std::to_string(process)};
      }
      endpoint = bridge_endpoint;
    }
    if (!send_parts(outlets_.find(endpoint), actor::encode(f.head), f.body)) {
      return failure{errc::mailbox_full, "the queue to " + endpoint + " is full"};
    }
    return {};
  } catch (const zmq::error_t& e) {
    return failure{errc::unreachable, std::string("ZeroMQ: ") + e.what()};
  }

  std::optional<frame> receive() override try {
    while (receive_parts(inbox_, parts_)) {
      auto head = parts_.size() == 2 ? read_envelope(view(parts_[0])) : std::nullopt;
      if (head) return frame{std::move(*head), std::string(view(parts_[1]))};
      note_dropped("bytes that are no frame");
    }
    return std::nullopt;
  } catch (const zmq::error_t&) {
    return std::nullopt;  // the context is closing
  }

  void wait(microseconds at_most) override try {
    zmq::pollitem_t item{inbox_.handle(), 0, ZMQ_POLLIN, 0};
    const auto millis = std::chrono::ceil<std::chrono::milliseconds>(at_most);
    zmq::poll(&item, 1, millis);
  } catch (const zmq::error_t&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // interrupted, or the context is closing
  }

  [[nodiscard]] int descriptor() { return inbox_.get(zmq::sockopt::fd); }

 private:
  zmq_fabric::state& fabric_;
  zmq::socket_t inbox_;
  outlets outlets_;
  std::vector<zmq::message_t> parts_;
};

namespace {

/// Carries frames between this process and others. Lives on its own thread.
class bridge {
 public:
  bridge(zmq::context_t& context, std::uint16_t process, bridge_options options, std::vector<address> watchers,
         const fabric_layout& layout)
      : process_(process),
        options_(std::move(options)),
        watchers_(std::move(watchers)),
        outbound_(context, ZMQ_PULL),
        network_(context, options_.listen.empty() ? ZMQ_DEALER : ZMQ_ROUTER),
        outlets_(context) {
    outlets_.open(layout);
  }

  /// Returns the bound endpoint, empty when dialling.
  std::string open() {
    outbound_.set(zmq::sockopt::rcvhwm, inproc_frames_max);
    outbound_.bind(bridge_endpoint);
    network_.set(zmq::sockopt::linger, 200);
    network_.set(zmq::sockopt::sndhwm, network_frames_max);
    network_.set(zmq::sockopt::rcvhwm, network_frames_max);
    network_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(options_.message_bytes_max));
    network_.set(zmq::sockopt::heartbeat_ivl, 1000);
    network_.set(zmq::sockopt::heartbeat_timeout, 3000);
    network_.set(zmq::sockopt::handshake_ivl, 5000);
    network_.set(zmq::sockopt::tcp_keepalive, 1);
    if (listening()) {
      network_.set(zmq::sockopt::router_mandatory, 1);
      // A worker that comes back with its old identity takes over from its dead self; under CURVE only key holders can.
      network_.set(zmq::sockopt::router_handover, 1);
      if (options_.own_keys) {
        network_.set(zmq::sockopt::curve_server, 1);
        network_.set(zmq::sockopt::curve_secretkey, options_.own_keys->secret_key);
        network_.set(zmq::sockopt::zap_domain, curve_gate::domain);
      }
      network_.bind(options_.listen);
      return network_.get(zmq::sockopt::last_endpoint);
    }
    network_.set(zmq::sockopt::routing_id, identity_of(process_));
    network_.set(zmq::sockopt::immediate, 1);
    if (options_.own_keys) {
      network_.set(zmq::sockopt::curve_serverkey, options_.server_public_key);
      network_.set(zmq::sockopt::curve_publickey, options_.own_keys->public_key);
      network_.set(zmq::sockopt::curve_secretkey, options_.own_keys->secret_key);
    }
    network_.connect(options_.join);
    return {};
  }

  void run(const std::atomic<bool>& running) {
    auto next_beat = std::chrono::steady_clock::now();
    while (running) {
      try {
        zmq::pollitem_t items[] = {{outbound_.handle(), 0, ZMQ_POLLIN, 0}, {network_.handle(), 0, ZMQ_POLLIN, 0}};
        zmq::poll(items, 2, std::chrono::milliseconds(100));
        while (receive_parts(outbound_, parts_)) forward_out();
        while (receive_parts(network_, parts_)) take_in();
        const auto now = std::chrono::steady_clock::now();
        if (now >= next_beat) {
          beat(now);
          next_beat = now + options_.heartbeat;
        }
      } catch (const zmq::error_t& e) {
        if (e.num() == ETERM) return;
      }
    }
  }

 private:
  struct peer {
    std::chrono::steady_clock::time_point heard;
    bool reachable = false;
  };

  [[nodiscard]] bool listening() const { return !options_.listen.empty(); }

  void forward_out() {
    if (parts_.size() != 2) return;
    auto head = read_envelope(view(parts_[0]));
    if (!head) return;
    if (send_to(actor::process_of(head->to), view(parts_[0]), view(parts_[1]))) return;
    actor::count_undelivered(errc::unreachable);
    if (head->from.value == 0 || head->id == actor::undeliverable::id) return;
    const actor::undeliverable news{
        head->to, head->id,
        failure{errc::unreachable, "process " + std::to_string(actor::process_of(head->to)) + " is not connected"},
        head->subject};
    send_local(frame{envelope{.to = head->from, .id = actor::undeliverable::id}, actor::encode(news)});
  }

  bool send_to(std::uint16_t process, std::string_view head, std::string_view body) try {
    if (listening()) {
      const std::string id = identity_of(process);
      if (!network_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
    }
    return send_parts(network_, head, body);
  } catch (const zmq::error_t&) {
    return false;  // EHOSTUNREACH: no peer with that identity is connected
  }

  // A frame from the network: [identity] envelope body. Believed only as far as its identity reaches.
  void take_in() {
    const std::size_t expected = listening() ? 3 : 2;
    auto head = parts_.size() == expected ? read_envelope(view(parts_[expected - 2])) : std::nullopt;
    if (!head) return note_dropped("bytes from the network that are no frame");
    const std::uint16_t claimed = actor::process_of(head->from);
    if (listening() && process_of_identity(view(parts_[0])) != claimed) {
      return note_dropped("a frame that claims to come from process " + std::to_string(claimed));
    }
    auto& p = peers_[claimed];
    p.heard = std::chrono::steady_clock::now();
    if (!p.reachable) announce(claimed, p, true);
    if (head->to.value == 0) return;  // a heartbeat
    if (actor::process_of(head->to) != process_ || actor::number_of(head->to) == 0) {
      // Workers' own controls are not for other processes.
      return note_dropped("a frame for " + actor::to_string(head->to) + ", which other processes may not reach");
    }
    send_local(frame{std::move(*head), std::string(view(parts_[expected - 1]))});
  }

  void announce(std::uint16_t process, peer& p, bool reachable) {
    p.reachable = reachable;
    log_line(reachable ? log_level::info : log_level::warning, "bridge",
             "process " + std::to_string(process) + (reachable ? " connected" : " lost"));
    for (const address w : watchers_) {
      send_local(
          frame{envelope{.to = w, .id = actor::peer_state::id}, actor::encode(actor::peer_state{process, reachable})});
    }
  }

  void beat(std::chrono::steady_clock::time_point now) {
    const envelope head{.from = actor::make_address(process_, 0, 0)};
    const std::string bytes = actor::encode(head);
    if (!listening()) {
      (void)send_parts(network_, bytes, {});
    } else {
      for (const auto& [process, p] : peers_) {
        if (p.reachable) (void)send_to(process, bytes, {});
      }
    }
    for (auto& [process, p] : peers_) {
      if (p.reachable && now - p.heard > options_.silence_max) announce(process, p, false);
    }
  }

  void send_local(const frame& f) {
    const std::string endpoint = worker_endpoint(actor::worker_of(f.head.to));
    if (!send_parts(outlets_.find(endpoint), actor::encode(f.head), f.body)) {
      actor::count_undelivered(errc::mailbox_full);
      note_dropped("a frame for the full queue of " + endpoint);
    }
  }

  std::uint16_t process_;
  bridge_options options_;
  std::vector<address> watchers_;
  zmq::socket_t outbound_;
  zmq::socket_t network_;
  outlets outlets_;
  std::map<std::uint16_t, peer> peers_;
  std::vector<zmq::message_t> parts_;
};

bool is_tcp(const std::string& endpoint) { return endpoint.starts_with("tcp://"); }

/// A directory that others cannot enter keeps them from an ipc socket inside.
result<void> check_ipc_directory(const std::string& endpoint) {
  const std::string path = endpoint.substr(std::string("ipc://").size());
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    return failure{errc::io_error, "the directory of " + endpoint + " does not exist"};
  }
  if ((info.st_mode & 077) != 0) {
    return failure{errc::invalid_argument, "expected a directory that only its owner can enter (mode 0700) for " +
                                               endpoint + ", found " + directory + " open to others"};
  }
  return {};
}

result<void> check_endpoint(const std::string& endpoint, const bridge_options& options) {
  if (endpoint.starts_with("ipc://")) return options.listen.empty() ? result<void>{} : check_ipc_directory(endpoint);
  if (!is_tcp(endpoint)) {
    return failure{errc::invalid_argument,
                   "expected an endpoint tcp://HOST:PORT or ipc://PATH, found '" + endpoint + "'"};
  }
  if (!options.own_keys && !options.insecure_plaintext) {
    return failure{errc::invalid_argument, "expected CURVE keys for " + endpoint +
                                               " (make them with 'redline keygen'), or plaintext asked for by name"};
  }
  return {};
}

}  // namespace

zmq_fabric::zmq_fabric(std::uint16_t process, fabric_layout layout) : state_(std::make_unique<state>()) {
  state_->process = process;
  state_->layout = std::move(layout);
}
zmq_fabric::~zmq_fabric() { stop_bridge(); }

std::unique_ptr<actor::link> zmq_fabric::make_link(std::uint16_t number) {
  REDLINE_ASSERT(number < state_->workers.size() && !state_->workers[number], "two links for one worker");
  auto made = std::make_unique<zmq_link>(*state_, number);
  state_->workers[number] = true;
  return made;
}

result<void> zmq_fabric::start_bridge(const bridge_options& options, std::vector<address> watchers) {
  REDLINE_ASSERT(options.listen.empty() != options.join.empty(), "a bridge either listens or joins");
  const std::string& endpoint = options.listen.empty() ? options.join : options.listen;
  REDLINE_TRY(check_endpoint(endpoint, options));
  try {
    if (options.own_keys && !options.listen.empty()) {
      // Before any server socket: a CURVE server without its gate would let everybody in.
      state_->gate = std::make_unique<curve_gate>(state_->context, options.allowed_public_keys);
    }
    auto b = std::make_unique<bridge>(state_->context, state_->process, options, std::move(watchers), state_->layout);
    state_->bound = b->open();
    state_->bridge_running = true;
    state_->bridge_thread = std::thread([this, carrier = std::move(b)] { carrier->run(state_->bridge_running); });
  } catch (const zmq::error_t& e) {
    return failure{errc::io_error, "cannot open " + endpoint + ": " + e.what()};
  }
  return {};
}

std::string zmq_fabric::bound_endpoint() const { return state_->bound; }

void zmq_fabric::stop_bridge() {
  state_->bridge_running = false;
  if (state_->bridge_thread.joinable()) state_->bridge_thread.join();
  state_->gate.reset();
}

std::uint16_t zmq_fabric::process() const { return state_->process; }

curve_keys make_curve_keys() {
  char public_key[41];
  char secret_key[41];
  REDLINE_ASSERT(zmq_curve_keypair(public_key, secret_key) == 0, "libzmq was built without CURVE");
  return {public_key, secret_key};
}

int readable_descriptor(actor::link& l) {
  auto* typed = dynamic_cast<zmq_link*>(&l);
  REDLINE_ASSERT(typed != nullptr, "not a link of a zmq_fabric");
  return typed->descriptor();
}

}  // namespace redline::transport
