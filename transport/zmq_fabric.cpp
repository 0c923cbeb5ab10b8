#include "transport/zmq_fabric.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <zmq.hpp>

#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/undelivered.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "transport/bridge_counts.hpp"
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

/// A run of a process: its number, and what it drew when it started.
struct incarnation {
  std::uint16_t process = 0;
  std::uint64_t life = 0;
  bool operator==(const incarnation&) const = default;
};

// ROUTER identities may not start with a zero byte.
std::string identity_of(const incarnation& who) {
  std::string id = {'P', static_cast<char>(who.process >> 8), static_cast<char>(who.process & 0xff)};
  for (int shift = 56; shift >= 0; shift -= 8) id += static_cast<char>((who.life >> shift) & 0xff);
  return id;
}
std::optional<incarnation> parse_identity(std::string_view id) {
  if (id.size() != 11 || id[0] != 'P') return std::nullopt;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint64_t>(static_cast<unsigned char>(id[i])); };
  incarnation who{static_cast<std::uint16_t>((byte(1) << 8) | byte(2)), 0};
  for (std::size_t i = 3; i < id.size(); ++i) who.life = (who.life << 8) | byte(i);
  return who;
}

// A bridge's own messages to another. They go to nobody (address 0).
constexpr actor::message_id hello_id{0};
constexpr actor::message_id refusal_id{1};

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
  int ipc_lock = -1;
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
  bridge(zmq::context_t& context, incarnation self, bridge_options options, std::vector<address> watchers,
         const fabric_layout& layout, std::function<bool(std::uint16_t)> has_worker)
      : self_(self),
        options_(std::move(options)),
        watchers_(std::move(watchers)),
        has_worker_(std::move(has_worker)),
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
      if (options_.own_keys) {
        network_.set(zmq::sockopt::curve_server, 1);
        network_.set(zmq::sockopt::curve_secretkey, options_.own_keys->secret_key);
        network_.set(zmq::sockopt::zap_domain, curve_gate::domain);
      }
      network_.bind(options_.listen);
      return network_.get(zmq::sockopt::last_endpoint);
    }
    network_.set(zmq::sockopt::routing_id, identity_of(self_));
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
    auto next_beat = clock::now();
    while (running) {
      try {
        zmq::pollitem_t items[] = {{outbound_.handle(), 0, ZMQ_POLLIN, 0}, {network_.handle(), 0, ZMQ_POLLIN, 0}};
        zmq::poll(items, 2, std::chrono::milliseconds(100));
        // A part at a time, so that neither side starves the other or the heartbeat.
        for (int n = 0; n < frames_per_turn_max && receive_parts(outbound_, parts_); ++n) forward_out();
        for (int n = 0; n < frames_per_turn_max && receive_parts(network_, parts_); ++n) take_in();
        const auto now = clock::now();
        if (now < next_beat) continue;
        const bool met = beat(now);
        next_beat = now + (met ? options_.heartbeat : std::min<microseconds>(options_.heartbeat, first_contact));
      } catch (const zmq::error_t& e) {
        if (e.num() == ETERM) return;
      }
    }
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int frames_per_turn_max = 256;
  static constexpr microseconds first_contact{100'000};  // between hellos to a server that has not answered
  static constexpr std::size_t refused_max = 64;

  struct peer {
    std::uint64_t life = 0;
    clock::time_point heard;
    bool reachable = false;
  };
  /// A process that was refused, so that the reason is told when it is new and not with each of its hellos.
  struct refused_peer {
    std::string why;
    clock::time_point told;
  };

  [[nodiscard]] bool listening() const { return !options_.listen.empty(); }

  void forward_out() {
    if (parts_.size() != 2) return;
    auto head = read_envelope(view(parts_[0]));
    if (!head) return;
    const std::uint16_t to = actor::process_of(head->to);
    const auto at = peers_.find(to);
    if (at != peers_.end() && at->second.reachable) {
      head->from_life = self_.life;
      head->to_life = at->second.life;
      if (send_to({to, at->second.life}, *head, view(parts_[1]))) return;
    }
    actor::count_undelivered(errc::unreachable);
    if (head->from.value == 0 || head->id == actor::undeliverable::id) return;
    const actor::undeliverable news{head->to, head->id,
                                    failure{errc::unreachable, "process " + std::to_string(to) + " is not connected"},
                                    head->subject};
    send_local(frame{envelope{.to = head->from, .id = actor::undeliverable::id}, actor::encode(news)});
  }

  bool send_to(const incarnation& to, const envelope& head, std::string_view body) try {
    if (listening()) {
      const std::string id = identity_of(to);
      if (!network_.send(zmq::buffer(id), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
    }
    return send_parts(network_, actor::encode(head), body);
  } catch (const zmq::error_t&) {
    return false;  // EHOSTUNREACH: no peer with that identity is connected
  }

  bool say_hello(const incarnation& to) {
    return send_to(to, {.from = actor::make_address(self_.process, 0, 0), .id = hello_id, .from_life = self_.life},
                   options_.rules.hello);
  }

  // A frame from the network: [identity] envelope body. Believed only as far as its identity and role reach.
  void take_in() {
    const std::size_t expected = listening() ? 3 : 2;
    auto head = parts_.size() == expected ? read_envelope(view(parts_[expected - 2])) : std::nullopt;
    if (!head) return note_refusal(bridge_refusal::malformed, "bytes from the network that are no frame");
    const incarnation sender{actor::process_of(head->from), head->from_life};
    const std::string_view body = view(parts_[expected - 1]);
    if (!may_be(sender)) {
      return note_refusal(bridge_refusal::sender, "a peer that claims to be process " + std::to_string(sender.process));
    }
    const bool is_hello = head->to.value == 0 && head->id == hello_id;
    if (head->to.value == 0 && head->id == refusal_id) return hear_refusal(sender, std::string(body));
    peer& p = peers_[sender.process];
    if (!p.reachable || p.life != sender.life) {
      if (!is_hello) return note_refusal(bridge_refusal::stale, "a message of a process that said no hello");
      if (!meet(sender, p, body)) return;
    }
    p.heard = clock::now();
    if (is_hello) return;
    if (head->to_life != self_.life) return note_refusal(bridge_refusal::stale, "a message for a process that is gone");
    if (!may_send(sender.process, *head, body)) {
      return note_refusal(bridge_refusal::message, "message " + std::to_string(head->id.value) + " of process " +
                                                       std::to_string(sender.process) +
                                                       ", whose role does not send it");
    }
    // Workers' own controls are not for other processes.
    if (actor::process_of(head->to) != self_.process || actor::number_of(head->to) == 0 ||
        !has_worker_(actor::worker_of(head->to))) {
      return note_refusal(bridge_refusal::receiver,
                          "a message for " + actor::to_string(head->to) + ", which other processes may not reach");
    }
    head->from_life = head->to_life = 0;
    send_local(frame{std::move(*head), std::string(body)});
  }

  /// Whether the frame's sender is the process at the other end of its connection, as far as identity and key tell.
  bool may_be(const incarnation& sender) try {
    if (sender.process == self_.process || sender.life == 0) return false;
    if (!listening()) return true;
    if (parse_identity(view(parts_[0])) != sender) return false;
    if (options_.key_processes.empty()) return true;
    const auto bound = options_.key_processes.find(parts_[1].gets("User-Id"));
    return bound == options_.key_processes.end() || bound->second == sender.process;
  } catch (const zmq::error_t&) {
    return false;  // its connection has no key
  }

  bool may_send(std::uint16_t process, const envelope& head, std::string_view body) const {
    if (head.id == actor::undeliverable::id) {
      const auto news = actor::decode<actor::undeliverable>(body);
      return news && actor::process_of(news->to) == process;
    }
    return !options_.rules.may_send || options_.rules.may_send(process, head.id);
  }

  /// A process says hello that is not the one known under its number. False: it is refused.
  bool meet(const incarnation& who, peer& known, std::string_view hello) {
    if (known.reachable && known.life != who.life) {
      if (listening() && say_hello({who.process, known.life})) {
        refuse(who, "another process " + std::to_string(who.process) + " is connected; stop it first", false);
        return false;
      }
      announce(who.process, known, false);
    }
    if (options_.rules.check) {
      if (const auto good = options_.rules.check(who.process, hello); !good) {
        refuse(who, good.error().context, true);
        return false;
      }
    }
    refused_.erase(who.life);
    refused_.erase(self_.life);
    known.life = who.life;
    (void)say_hello(who);
    announce(who.process, known, true);
    return true;
  }

  void refuse(const incarnation& who, const std::string& why, bool tells_watchers) {
    if (refused_.size() >= refused_max) refused_.clear();
    auto& r = refused_[who.life];
    const auto now = clock::now();
    const bool is_new = r.why != why;
    if (!is_new && now - r.told < options_.heartbeat) return;
    r = {why, now};
    (void)send_to(who, {.from = actor::make_address(self_.process, 0, 0), .id = refusal_id, .from_life = self_.life},
                  why);
    if (!is_new) return;
    count_refusal(bridge_refusal::process);
    log_line(log_level::error, "bridge", "refused process " + std::to_string(who.process) + ": " + why);
    if (tells_watchers) tell_watchers({who.process, false, why});
  }

  void hear_refusal(const incarnation& by, std::string why) {
    if (why.size() > refusal_bytes_max) why.resize(refusal_bytes_max);
    const auto at = peers_.find(by.process);
    if (at != peers_.end() && at->second.reachable && at->second.life == by.life)
      announce(by.process, at->second, false);
    auto& r = refused_[self_.life];
    if (r.why == why) return;
    r.why = why;
    log_line(log_level::error, "bridge", "process " + std::to_string(by.process) + " refuses this one: " + why);
    tell_watchers({by.process, false, "process " + std::to_string(by.process) + " says: " + why});
  }
  static constexpr std::size_t refusal_bytes_max = 1024;

  void announce(std::uint16_t process, peer& p, bool reachable) {
    p.reachable = reachable;
    p.heard = clock::now();
    log_line(reachable ? log_level::info : log_level::warning, "bridge",
             "process " + std::to_string(process) + (reachable ? " connected" : " lost"));
    tell_watchers({process, reachable, {}});
  }

  void tell_watchers(const actor::peer_state& news) {
    for (const address w : watchers_) {
      send_local(frame{envelope{.to = w, .id = actor::peer_state::id}, actor::encode(news)});
    }
  }

  /// Says hello again to all, and notices who is silent. False: the server has not been met.
  bool beat(clock::time_point now) {
    if (!listening()) (void)say_hello({});
    bool met = listening();
    for (auto& [process, p] : peers_) {
      if (!p.reachable) continue;
      met = true;
      const bool is_gone = listening() && !say_hello({process, p.life}) && now - p.heard > options_.heartbeat;
      if (is_gone || now - p.heard > options_.silence_max) announce(process, p, false);
    }
    return met;
  }

  void send_local(const frame& f) {
    const std::string endpoint = worker_endpoint(actor::worker_of(f.head.to));
    if (!send_parts(outlets_.find(endpoint), actor::encode(f.head), f.body)) {
      actor::count_undelivered(errc::mailbox_full);
      note_dropped("a frame for the full queue of " + endpoint);
    }
  }

  incarnation self_;
  bridge_options options_;
  std::vector<address> watchers_;
  std::function<bool(std::uint16_t)> has_worker_;
  zmq::socket_t outbound_;
  zmq::socket_t network_;
  outlets outlets_;
  std::map<std::uint16_t, peer> peers_;
  std::map<std::uint64_t, refused_peer> refused_;  // by life
  std::vector<zmq::message_t> parts_;
};

bool is_tcp(const std::string& endpoint) { return endpoint.starts_with("tcp://"); }

std::string path_of_ipc(const std::string& endpoint) { return endpoint.substr(std::string("ipc://").size()); }

/// A directory that others cannot enter keeps them from an ipc socket inside; both sides look, because its owner
/// can put another socket there.
result<void> check_ipc_directory(const std::string& endpoint) {
  const std::string path = path_of_ipc(endpoint);
  const auto slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) {
    return failure{errc::io_error, "the directory of " + endpoint + " does not exist"};
  }
  const std::string expected = "expected a directory of this user that nobody else can enter (mode 0700) for " +
                               endpoint + ", found " + directory;
  if (info.st_uid != ::geteuid()) {
    return failure{errc::invalid_argument, expected + " owned by user " + std::to_string(info.st_uid)};
  }
  if ((info.st_mode & 077) != 0) return failure{errc::invalid_argument, expected + " open to others"};
  return {};
}

/// libzmq takes a bound path away from whom it belongs to: a lock beside it, held as long as the process lives, says
/// that it is taken. Returns its descriptor.
result<int> lock_ipc_path(const std::string& endpoint) {
  const std::string path = path_of_ipc(endpoint) + ".lock";
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor < 0) {
    return failure{errc::io_error, path + ": cannot be opened: " + std::system_category().message(errno)};
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return failure{errc::invalid_argument,
                 "expected an endpoint of its own for each server, found that another process "
                 "listens at " +
                     endpoint};
}

result<void> check_endpoint(const std::string& endpoint, const bridge_options& options) {
  if (endpoint.starts_with("ipc://")) return check_ipc_directory(endpoint);
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
  if (endpoint.starts_with("ipc://") && !options.listen.empty()) {
    REDLINE_TRY_ASSIGN(state_->ipc_lock, lock_ipc_path(endpoint));
  }
  try {
    if (options.own_keys && !options.listen.empty()) {
      // Before any server socket: a CURVE server without its gate would let everybody in.
      state_->gate = std::make_unique<curve_gate>(state_->context, options.allowed_public_keys);
    }
    const incarnation self{state_->process, real_environment().random() | 1};
    auto b = std::make_unique<bridge>(
        state_->context, self, options, std::move(watchers), state_->layout,
        [s = state_.get()](std::uint16_t number) { return number < s->workers.size() && s->workers[number]; });
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
  if (const int lock = std::exchange(state_->ipc_lock, -1); lock >= 0) ::close(lock);
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
