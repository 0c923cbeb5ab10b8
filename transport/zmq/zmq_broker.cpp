#include "transport/zmq/zmq_broker.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <zmq.hpp>

#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/base/environment.hpp"
#include "runtime/base/log.hpp"
#include "transport/zmq/bridge_counts.hpp"
#include "transport/zmq/curve_gate.hpp"
#include "transport/zmq/handshake_watch.hpp"
#include "transport/zmq/zmq_bridge.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {

using actor::envelope;

/// The registry and the sockets. Runs on one thread, except for the counts.
class zmq_broker::router {
 public:
  router(zmq::context_t& context, const broker_options& options, const std::string& inside)
      : options_(options), start_id_(real_environment().random() | 1) {
    if (options_.own_keys) gate_ = std::make_unique<curve_gate>(context, options_.allowed_public_keys);
    sockets_.emplace_back(context, ZMQ_ROUTER);
    set_up(sockets_.back());
    if (options_.own_keys) {
      sockets_.back().set(zmq::sockopt::curve_server, 1);
      sockets_.back().set(zmq::sockopt::curve_secretkey, options_.own_keys->secret_key);
      sockets_.back().set(zmq::sockopt::zap_domain, curve_gate::domain);
    }
    watch_.emplace(context, sockets_.back(), options_.own_keys.has_value());
    for (const auto& endpoint : options_.listens) {
      sockets_.back().bind(endpoint);
      bound.push_back(sockets_.back().get(zmq::sockopt::last_endpoint));
    }
    if (inside.empty()) return;
    sockets_.emplace_back(context, ZMQ_ROUTER);
    set_up(sockets_.back());
    sockets_.back().bind(inside);
  }

  void run(const std::atomic<bool>& running) {
    std::vector<zmq::pollitem_t> items;
    for (auto& socket : sockets_) items.push_back({socket.handle(), 0, ZMQ_POLLIN, 0});
    items.push_back({watch_->handle(), 0, ZMQ_POLLIN, 0});
    auto next_beat = clock::now();
    while (running) {
      try {
        zmq::poll(items.data(), items.size(), std::chrono::milliseconds(50));
        for (std::size_t i = 0; i < sockets_.size(); ++i) {
          for (int n = 0; n < frames_per_turn_max && receive_parts(sockets_[i], parts_); ++n) take_in(i);
        }
        watch_->read();
        const auto now = clock::now();
        if (now < next_beat) continue;
        beat(now);
        next_beat = now + options_.limits.heartbeat;
      } catch (const zmq::error_t& e) {
        if (e.num() == ETERM) return;
      }
    }
    for (auto& [number, p] : peers_) send_control(p, wire::bye, "it has stopped");
  }

  std::vector<std::string> bound;
  std::atomic<std::uint64_t> frames{0}, bytes{0}, undelivered{0}, processes{0};

 private:
  using clock = std::chrono::steady_clock;
  static constexpr int frames_per_turn_max = 256;
  static constexpr std::uint64_t untold_bytes_max = 1u << 22;
  static constexpr std::size_t refused_max = 256;

  struct peer {
    process_start who;
    std::string identity;
    std::string key;  // the key of its connection; empty without CURVE
    std::size_t socket = 0;
    std::uint8_t role = 0;
    std::string card;
    clock::time_point heard;
    std::uint64_t sent_bytes = 0, acknowledged_bytes = 0;
    std::uint64_t received_bytes = 0, told_bytes = 0;
  };
  enum class outcome : std::uint8_t { sent, full, gone };

  void set_up(zmq::socket_t& socket) const {
    set_link_options(socket, options_.limits);
    socket.set(zmq::sockopt::router_mandatory, 1);
  }

  [[nodiscard]] bool meets(const peer& a, const peer& b) const {
    return a.who.process != b.who.process && (!options_.rules.may_meet || options_.rules.may_meet(a.role, b.role));
  }

  // The parts are [identity] envelope body.
  void take_in(std::size_t socket) {
    if (parts_.size() != 3) return note_refusal(bridge_refusal::malformed, "bytes that are not a frame");
    const auto who = parse_identity(view(parts_[0]));
    auto head = who ? read_envelope(view(parts_[1])) : std::nullopt;
    if (!head) return note_refusal(bridge_refusal::malformed, "bytes that are not a frame of this version");
    if (actor::process_of(head->from) != who->process || head->from_start_id != who->start_id || who->process == 0 ||
        who->start_id == 0) {
      return note_refusal(bridge_refusal::sender,
                          "a frame from process " + std::to_string(who->process) + " that names another sender");
    }
    const bool is_control = head->to.value == 0;
    const auto at = peers_.find(who->process);
    const bool is_known = at != peers_.end() && at->second.who == *who && at->second.socket == socket &&
                          at->second.key == key_of(parts_[1]);
    if (is_control && head->id == wire::hello) return hear_hello(*who, socket);
    if (!is_known) {
      note_refusal(bridge_refusal::stale,
                   "a frame from process " + std::to_string(who->process) + " that has not sent a hello");
      const peer stranger{.who = *who, .identity = std::string(view(parts_[0])), .socket = socket};
      return send_control(stranger, wire::unknown, {});
    }
    peer& sender = at->second;
    sender.heard = clock::now();
    if (is_control) return take_control(sender, *head);
    sender.received_bytes += parts_[1].size() + parts_[2].size();
    if (sender.received_bytes - sender.told_bytes > untold_bytes_max) tell_received(sender);
    route(sender, *head);
  }

  std::string key_of(zmq::message_t& part) const {
    if (!options_.own_keys) return {};
    try {
      return part.gets("User-Id");
    } catch (const zmq::error_t&) {
      return {};  // it came from inside the process
    }
  }

  void route(peer& sender, const envelope& head) {
    if (options_.rules.may_send && head.id != actor::undeliverable::id &&
        !options_.rules.may_send(sender.role, head.id)) {
      return note_refusal(bridge_refusal::message, "message " + std::to_string(head.id.value) + " from process " +
                                                       std::to_string(sender.who.process) +
                                                       ", whose role does not send it");
    }
    const auto at = peers_.find(actor::process_of(head.to));
    const bool is_there =
        at != peers_.end() && at->second.who.start_id == head.to_start_id && meets(sender, at->second);
    if (!is_there) return give_back(sender, head, {errc::unreachable, "the process is not connected to the broker"});
    const std::size_t size = parts_[1].size() + parts_[2].size();
    switch (forward(at->second, size)) {
      case outcome::sent:
        ++frames;
        bytes += size;
        return;
      case outcome::full:
        return give_back(sender, head, {errc::mailbox_full, "the link to the process is full"});
      case outcome::gone:
        give_back(sender, head, {errc::unreachable, "the process is gone"});
        return lose(at->second.who.process, "its connection is gone");
    }
  }

  // Forwards the frame in parts_ unchanged.
  outcome forward(peer& to, std::size_t size) try {
    if (to.sent_bytes - to.acknowledged_bytes > options_.limits.unreceived_bytes_max) return outcome::full;
    auto& socket = sockets_[to.socket];
    if (!socket.send(zmq::buffer(to.identity), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) {
      return outcome::full;
    }
    socket.send(parts_[1], zmq::send_flags::sndmore | zmq::send_flags::dontwait);
    socket.send(parts_[2], zmq::send_flags::dontwait);
    to.sent_bytes += size;
    return outcome::sent;
  } catch (const zmq::error_t&) {
    return outcome::gone;
  }

  void give_back(peer& sender, const envelope& head, failure why) {
    ++undelivered;
    auto news = undeliverable_news(head, std::move(why));
    if (!news) return;
    news->head.from_start_id = start_id_;
    news->head.to_start_id = sender.who.start_id;
    (void)send(sender, news->head, news->body);
  }

  bool send(const peer& to, const envelope& head, std::string_view body) try {
    auto& socket = sockets_[to.socket];
    if (!socket.send(zmq::buffer(to.identity), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return true;
    (void)send_parts(socket, actor::encode(head), body);
    return true;
  } catch (const zmq::error_t&) {
    return false;  // EHOSTUNREACH
  }
  /// Returns false if no connection has that identity. A message that does not fit into a full queue is lost; another
  /// heartbeat follows.
  bool try_control(const peer& to, actor::message_id what, std::string_view body) {
    return send(to, {.id = what, .from_start_id = start_id_}, body);
  }
  void send_control(const peer& to, actor::message_id what, std::string_view body) {
    (void)try_control(to, what, body);
  }
  void tell_received(peer& p) {
    p.told_bytes = p.received_bytes;
    send_control(p, wire::beat, actor::encode(link_beat{p.received_bytes, p.sent_bytes}));
  }

  void hear_hello(const process_start& who, std::size_t socket) {
    const std::string_view card = view(parts_[2]);
    peer p{.who = who,
           .identity = std::string(view(parts_[0])),
           .key = key_of(parts_[1]),
           .socket = socket,
           .card = std::string(card.substr(0, card_bytes_max)),
           .heard = clock::now()};
    const auto known = peers_.find(who.process);
    if (known != peers_.end() && known->second.who == who && known->second.socket == socket &&
        known->second.key != p.key) {
      // Another process now has its connection: no more frames meant for it go there.
      lose(who.process, "its connection is used with another key");
      return refuse(p, "its number belongs to another process");
    }
    if (known != peers_.end() && (known->second.who != who || known->second.socket != socket)) {
      if (try_control(known->second, wire::beat,
                      actor::encode(link_beat{known->second.received_bytes, known->second.sent_bytes}))) {
        note_refusal(bridge_refusal::process, "two processes have the number " + std::to_string(who.process));
        return send_control(p, wire::taken, actor::encode(known->second.who));
      }
      lose(who.process, "it has restarted");
    }
    if (card.size() > card_bytes_max) return refuse(p, "its card is too large");
    if (options_.rules.read_role) {
      const auto role = options_.rules.read_role(card);
      if (!role) return refuse(p, role.error().context);
      p.role = *role;
    }
    const auto proven = options_.key_roles.find(p.key);
    if (!p.key.empty() && proven != options_.key_roles.end() && proven->second != p.role) {
      return refuse(p, "its key is not for this role");
    }
    const auto at = peers_.find(who.process);
    if (at != peers_.end() && at->second.socket == socket && at->second.key == p.key) {
      at->second.heard = p.heard;
      send_control(at->second, wire::hello, own_hello());
      // It may have lost what it was sent.
      if (at->second.card == p.card) return tell_all_to(at->second);
      at->second.card = p.card;
      at->second.role = p.role;
      return tell_others(at->second, true, {});
    }
    const peer& is = peers_[who.process] = std::move(p);
    processes = peers_.size();
    log_line(log_level::info, "broker", "process " + std::to_string(who.process) + " has connected");
    send_control(is, wire::hello, own_hello());
    tell_all_to(is);
    tell_others(is, true, {});
  }

  void tell_all_to(const peer& to) {
    for (const auto& [number, other] : peers_) {
      if (meets(to, other)) send_control(to, wire::member, actor::encode(news_of(other, true, {})));
    }
  }
  void tell_others(const peer& about, bool reachable, const std::string& why) {
    const std::string news = actor::encode(news_of(about, reachable, why));
    for (const auto& [number, other] : peers_) {
      if (meets(about, other)) send_control(other, wire::member, news);
    }
  }
  static member_news news_of(const peer& p, bool reachable, const std::string& why) {
    return {p.who.process, p.who.start_id, reachable, reachable ? p.card : std::string(), why};
  }

  [[nodiscard]] std::string own_hello() const { return actor::encode(broker_hello{options_.rules.protocol}); }

  /// Logs at most once a minute for each process and reason, because a process asks repeatedly, and at most once a
  /// second overall.
  void refuse(const peer& p, const std::string& why) {
    const std::string what = "process " + std::to_string(p.who.process) + ": " + why;
    if (refused_.size() >= refused_max) refused_.clear();
    auto& quiet_until = refused_[what];
    if (p.heard < quiet_until || p.heard < refusals_quiet_until_) {
      count_refusal(bridge_refusal::process);
    } else {
      quiet_until = p.heard + std::chrono::minutes(1);
      refusals_quiet_until_ = p.heard + std::chrono::seconds(1);
      note_refusal(bridge_refusal::process, what);
    }
    send_control(p, wire::refusal, why);
  }

  void take_control(peer& p, const envelope& head) {
    if (head.id == wire::beat) {
      if (const auto m = actor::decode<link_beat>(view(parts_[2]))) {
        p.acknowledged_bytes = std::min(m->received_bytes, p.sent_bytes);
        p.received_bytes = p.told_bytes = m->sent_bytes;
      }
    } else if (head.id == wire::bye) {
      lose(p.who.process, "it has stopped");
    }
  }

  void beat(clock::time_point now) {
    std::vector<std::pair<actor::process_number, std::string>> lost;
    for (auto& [number, p] : peers_) {
      p.told_bytes = p.received_bytes;
      if (!try_control(p, wire::beat, actor::encode(link_beat{p.received_bytes, p.sent_bytes}))) {
        lost.emplace_back(number, "its connection is gone");
      } else if (now - p.heard > options_.limits.silence_max) {
        lost.emplace_back(number, "it does not respond");
      }
    }
    for (const auto& [number, why] : lost) lose(number, why);
  }

  void lose(actor::process_number number, const std::string& why) {
    const auto at = peers_.find(number);
    if (at == peers_.end()) return;
    const peer gone = std::move(at->second);
    peers_.erase(at);
    processes = peers_.size();
    log_line(log_level::warning, "broker", "process " + std::to_string(number) + " is lost: " + why);
    tell_others(gone, false, why);
  }

  broker_options options_;
  std::uint64_t start_id_;
  std::unique_ptr<curve_gate> gate_;  // before any server socket: without its gate, a CURVE server admits every client
  std::vector<zmq::socket_t> sockets_;
  std::optional<handshake_watch> watch_;  // for the socket that others reach
  std::unordered_map<actor::process_number, peer> peers_;
  std::map<std::string, clock::time_point> refused_;  // lines in the log, and until when they must not be repeated
  clock::time_point refusals_quiet_until_;
  std::vector<zmq::message_t> parts_;
};

zmq_broker::zmq_broker(zmq::context_t* context) : context_(context) {
  if (context_ != nullptr) return;
  own_context_ = std::make_unique<zmq::context_t>(1);
  context_ = own_context_.get();
}

zmq_broker::~zmq_broker() { stop(); }

result<void> zmq_broker::start(const broker_options& options, const std::string& inside) {
  for (const auto& endpoint : options.listens) {
    REDLINE_TRY(check_endpoint(endpoint, options.own_keys.has_value(), options.insecure_plaintext));
    auto lock = lock_endpoint(endpoint);
    if (!lock) {
      stop();
      return lock.error();
    }
    if (*lock >= 0) locks_.push_back(*lock);
  }
  try {
    router_ = std::make_shared<router>(*context_, options, inside);
  } catch (const zmq::error_t& e) {
    stop();
    std::string names;
    for (const auto& endpoint : options.listens) names += (names.empty() ? "" : ", ") + endpoint;
    return failure{errc::io_error, "cannot listen at " + names + ": " + e.what()};
  }
  bound_ = router_->bound;
  running_ = true;
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "redline-broker");
    router_->run(running_);
  });
  return {};
}

broker_counts zmq_broker::counts() const {
  if (!router_) return {};
  return {router_->frames, router_->bytes, router_->undelivered, router_->processes};
}

void zmq_broker::stop() {
  running_ = false;
  if (thread_.joinable()) thread_.join();
  router_.reset();
  for (const int lock : std::exchange(locks_, {})) ::close(lock);
}

}  // namespace redline::transport
