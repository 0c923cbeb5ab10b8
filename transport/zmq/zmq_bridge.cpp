#include "transport/zmq/zmq_bridge.hpp"

#include <algorithm>

#include "runtime/actor/codec.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/undelivered.hpp"
#include "runtime/base/log.hpp"
#include "transport/zmq/bridge_counts.hpp"
#include "transport/zmq/zmq_parts.hpp"

namespace redline::transport {

using actor::envelope;

namespace {

constexpr int network_frames_max = 16384;
constexpr int frames_per_turn_max = 256;
// After this many new received bytes a link is notified at once, so that a fast sender need not wait for a heartbeat.
constexpr std::uint64_t untold_bytes_max = 1u << 22;

std::string shortened(std::string_view reason) { return std::string(reason.substr(0, reason_bytes_max)); }

}  // namespace

void set_link_options(zmq::socket_t& socket, const link_limits& limits) {
  const std::uint32_t bytes_max = limits.message_bytes_max != 0 ? limits.message_bytes_max : sizes::message_bytes_max;
  socket.set(zmq::sockopt::linger, 200);
  socket.set(zmq::sockopt::sndhwm, network_frames_max);
  socket.set(zmq::sockopt::rcvhwm, network_frames_max);
  socket.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(bytes_max));
  socket.set(zmq::sockopt::heartbeat_ivl, 1000);
  socket.set(zmq::sockopt::heartbeat_timeout, 3000);
  socket.set(zmq::sockopt::handshake_ivl, 5000);
  socket.set(zmq::sockopt::tcp_keepalive, 1);
}

zmq_bridge::zmq_bridge(zmq::context_t& context, process_start self, bridge_options options,
                       std::vector<actor::address> watchers, zmq::socket_t outbound, inside own)
    : self_(self),
      options_(std::move(options)),
      watchers_(std::move(watchers)),
      outbound_(std::move(outbound)),
      inside_(std::move(own)),
      card_(options_.card) {
  for (const auto& endpoint : options_.joins) {
    links_.push_back(
        {.endpoint = endpoint, .socket = zmq::socket_t(context, ZMQ_DEALER), .missed_since = clock::now()});
    connect(links_.back());
  }
}

void zmq_bridge::connect(broker_link& link) {
  set_link_options(link.socket, options_.limits);
  link.socket.set(zmq::sockopt::routing_id, to_identity(self_));
  // Without it, frames would queue for a broker that is not there.
  link.socket.set(zmq::sockopt::immediate, 1);
  link.socket.set(zmq::sockopt::reconnect_ivl, 100);
  link.socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
  if (options_.own_keys && !link.endpoint.starts_with("inproc://")) {
    link.socket.set(zmq::sockopt::curve_serverkey, options_.server_public_key);
    link.socket.set(zmq::sockopt::curve_publickey, options_.own_keys->public_key);
    link.socket.set(zmq::sockopt::curve_secretkey, options_.own_keys->secret_key);
  }
  link.socket.connect(link.endpoint);
}

void zmq_bridge::update_card(std::string card) {
  const std::lock_guard lock(card_mutex_);
  card_ = std::move(card);
  card_changed_ = true;
}

/// Handles a bounded number of frames, so that neither direction starves the other or the heartbeat.
std::size_t zmq_bridge::take_turn() {
  std::size_t carried = 0;
  for (int n = 0; n < frames_per_turn_max && receive_parts(outbound_, parts_); ++n, ++carried) forward_out();
  for (auto& link : links_) {
    for (int n = 0; n < frames_per_turn_max && receive_parts(link.socket, parts_); ++n, ++carried) take_in(link);
  }
  return carried;
}

void zmq_bridge::run(const std::atomic<bool>& running) {
  std::vector<zmq::pollitem_t> items{{outbound_.handle(), 0, ZMQ_POLLIN, 0}};
  for (auto& link : links_) items.push_back({link.socket.handle(), 0, ZMQ_POLLIN, 0});
  auto next_beat = clock::now();
  while (running) {
    try {
      zmq::poll(items.data(), items.size(), std::chrono::milliseconds(50));
      (void)take_turn();
      const auto now = clock::now();
      const bool has_news = card_changed_.exchange(false);
      if (has_news) {
        for (auto& link : links_) say_hello(link);
      }
      if (is_to_tell_again_.exchange(false)) {
        tell_standing();
        for (const auto& [process, p] : peers_) {
          if (!p.in_limbo && p.is.unfit.empty()) tell_watchers(process, true, {}, &p.is);
        }
      }
      if (now < next_beat) continue;
      beat(now);
      next_beat = now + options_.limits.heartbeat;
    } catch (const zmq::error_t& e) {
      if (e.num() == ETERM) return;
    }
  }
  for (auto& link : links_) send_control(link, wire::bye, "it has stopped");
}

// ---- out -----------------------------------------------------------------------------------------------------------

void zmq_bridge::forward_out() {
  if (parts_.size() != 2) return;
  auto head = read_envelope(view(parts_[0]));
  if (!head) return;
  const actor::process_number to = actor::process_of(head->to);
  const auto at = peers_.find(to);
  failure why{errc::unreachable, "process " + std::to_string(to) + " is not connected"};
  if (at != peers_.end() && at->second.is.unfit.empty()) {
    head->from_start_id = self_.start_id;
    head->to_start_id = at->second.is.start_id;
    if (broker_link* const link = find_link(to, at->second.is.start_id)) {
      if (send_frame(*link, *head, view(parts_[1]))) return;
      why = {errc::mailbox_full, "the link to process " + std::to_string(to) + " is full"};
      actor::count_undelivered(why.code);
    } else if (at->second.in_limbo) {
      // The peer is not lost yet: the sender's messages that it has stay valid if a broker comes back.
      why = {errc::not_ready, "no broker is connected to process " + std::to_string(to) + " now"};
    }
  }
  if (why.code != errc::mailbox_full) actor::count_undelivered(errc::unreachable);
  if (const auto news = undeliverable_news(*head, std::move(why))) deliver(*news);
}

/// The link to reach a process. It stays the same while it lasts, so that frames keep their order, and differs between
/// processes, so that brokers share the work.
zmq_bridge::broker_link* zmq_bridge::find_link(actor::process_number process, std::uint64_t start_id) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    auto& link = links_[(process + i) % links_.size()];
    const auto known = link.members.find(process);
    if (link.start_id != 0 && known != link.members.end() && known->second.start_id == start_id) return &link;
  }
  return nullptr;
}

bool zmq_bridge::send_frame(broker_link& link, const envelope& head, std::string_view body) try {
  if (link.sent_bytes - link.acknowledged_bytes > options_.limits.unreceived_bytes_max) return false;
  const std::string envelope_bytes = actor::encode(head);
  if (!send_parts(link.socket, envelope_bytes, body)) return false;
  link.sent_bytes += envelope_bytes.size() + body.size();
  return true;
} catch (const zmq::error_t&) {
  return false;
}

bool zmq_bridge::send_control(broker_link& link, actor::message_id what, std::string_view body) try {
  const envelope head{.from = actor::make_address(self_.process, 0, 0), .id = what, .from_start_id = self_.start_id};
  return send_parts(link.socket, actor::encode(head), body);
} catch (const zmq::error_t&) {
  return false;
}

void zmq_bridge::say_hello(broker_link& link) {
  const std::lock_guard lock(card_mutex_);
  (void)send_control(link, wire::hello, card_);
}

/// Sends heartbeats, and drops links and peers whose own are missing.
void zmq_bridge::beat(clock::time_point now) {
  for (auto& link : links_) {
    if (link.start_id == 0) {
      if (now >= link.asks_at) say_hello(link);
      if (link.is_missed || !link.refused.empty() || now - link.missed_since < options_.missed_after) continue;
      link.is_missed = true;
      log_line(log_level::warning, "bridge", why_missed(link));
      tell_standing();
      continue;
    }
    link.missed_since = now;
    link.told_bytes = link.received_bytes;
    if (!send_control(link, wire::beat, actor::encode(link_beat{link.received_bytes, link.sent_bytes}))) {
      lose_link(link, "the broker is gone");
    } else if (now - link.heard > options_.limits.silence_max) {
      lose_link(link, "the broker does not respond");
    }
  }
  std::vector<actor::process_number> gone;
  for (const auto& [process, p] : peers_) {
    if (p.in_limbo && now - p.lost_at > options_.limits.silence_max) gone.push_back(process);
  }
  for (const auto process : gone) {
    tell_watchers(process, false, "no broker is connected to it", nullptr);
    peers_.erase(process);
  }
}

// ---- in ------------------------------------------------------------------------------------------------------------

void zmq_bridge::take_in(broker_link& link) {
  auto head = parts_.size() == 2 ? read_envelope(view(parts_[0])) : std::nullopt;
  if (!head) return note_refusal(bridge_refusal::malformed, "bytes from a broker that are not a frame");
  const std::string_view body = view(parts_[1]);
  if (head->to.value == 0) return take_control(link, *head, body);
  link.received_bytes += parts_[0].size() + parts_[1].size();
  if (link.received_bytes - link.told_bytes > untold_bytes_max) {
    link.told_bytes = link.received_bytes;
    (void)send_control(link, wire::beat, actor::encode(link_beat{link.received_bytes, link.sent_bytes}));
  }
  const actor::process_number from = actor::process_of(head->from);
  if (head->to_start_id != self_.start_id)
    return note_refusal(bridge_refusal::stale, "a message for a process that is gone");
  // The broker itself reports what could not be delivered.
  if (head->from.value != 0) {
    const auto sender = peers_.find(from);
    if (sender == peers_.end() || sender->second.is.start_id != head->from_start_id ||
        !sender->second.is.unfit.empty()) {
      return note_refusal(bridge_refusal::stale,
                          "a message from process " + std::to_string(from) + ", which is unknown");
    }
    bool may = !options_.rules.may_send || options_.rules.may_send(sender->second.is.role, head->id);
    if (head->id == actor::undeliverable::id) {
      const auto news = actor::decode<actor::undeliverable>(body);
      may = news && actor::process_of(news->to) == from;
    }
    if (!may) {
      return note_refusal(bridge_refusal::message, "message " + std::to_string(head->id.value) + " from process " +
                                                       std::to_string(from) + ", whose role does not send it");
    }
  } else if (head->id != actor::undeliverable::id) {
    return note_refusal(bridge_refusal::message, "message " + std::to_string(head->id.value) + " from a broker");
  }
  // A worker's own controls are closed to other processes.
  if (actor::process_of(head->to) != self_.process || actor::number_of(head->to) == 0 ||
      !inside_.has_worker(actor::worker_of(head->to))) {
    return note_refusal(bridge_refusal::receiver,
                        "a message for " + actor::to_string(head->to) + ", to which other processes may not send");
  }
  head->from_start_id = head->to_start_id = 0;
  if (!inside_.deliver(*head, body)) actor::count_undelivered(errc::mailbox_full);
}

void zmq_bridge::take_control(broker_link& link, const envelope& head, std::string_view body) {
  const auto now = clock::now();
  if (head.id == wire::refusal) {
    link.asks_at = now + options_.limits.refused_pause;
    return be_refused(link, "refuses this process: " + shortened(body), shortened(body));
  }
  if (head.id == wire::taken) {
    const std::string why = "another process has the number " + std::to_string(self_.process);
    be_refused(link, "refuses this process: " + why, why);
    return hear_of_twin(body);
  }
  if (head.id == wire::hello && head.from_start_id != 0) {
    if (link.start_id == head.from_start_id) return;
    if (const auto why = why_unfit(body)) {
      link.asks_at = now + options_.limits.refused_pause;
      (void)send_control(link, wire::bye, *why);
      return be_refused(link, "is refused: " + *why, *why);
    }
    if (link.start_id != 0) lose_link(link, "the broker has restarted");
    link.start_id = head.from_start_id;
    link.heard = link.missed_since = now;
    link.is_missed = false;
    link.sent_bytes = link.acknowledged_bytes = link.received_bytes = link.told_bytes = 0;
    link.refused.clear();
    log_line(log_level::info, "bridge", "joined the broker at " + link.endpoint);
    tell_standing();
    return;
  }
  if (head.id == wire::unknown && head.from_start_id != 0) {
    lose_link(link, "the broker does not know this process");
    return say_hello(link);
  }
  if (link.start_id == 0 || link.start_id != head.from_start_id)
    return;  // its messages from before its hello do not count
  link.heard = now;
  if (head.id == wire::beat) {
    if (const auto m = actor::decode<link_beat>(body)) {
      link.acknowledged_bytes = std::min(m->received_bytes, link.sent_bytes);
      link.received_bytes = link.told_bytes = m->sent_bytes;
    }
  } else if (head.id == wire::member) {
    if (auto news = actor::decode<member_news>(body)) take_news(link, *news);
  } else if (head.id == wire::bye) {
    lose_link(link, "the broker reports: " + shortened(body));
  }
}

/// Handles a refusal by either side; logs a repeated reason once.
void zmq_bridge::be_refused(broker_link& link, const std::string& what, const std::string& why) {
  lose_link(link, why);
  if (std::exchange(link.refused, why) == why) return;
  log_line(log_level::error, "bridge", "the broker at " + link.endpoint + " " + what);
  tell_standing();
}

std::optional<std::string> zmq_bridge::why_unfit(std::string_view broker) const {
  const auto said = actor::decode<broker_hello>(broker);
  const std::uint32_t theirs = said ? said->protocol : 0;  // older brokers have no body
  if (theirs == options_.rules.protocol) return std::nullopt;
  return "expected a broker of protocol " + std::to_string(options_.rules.protocol) + ", found " +
         std::to_string(theirs) + "; run the same version of redline in all processes of a pool";
}

std::string zmq_bridge::why_missed(const broker_link& link) const {
  return "the broker at " + link.endpoint + " does not answer: expected a broker that is running there" +
         (options_.own_keys ? " and allows the key of this process" : " without keys (--keys)");
}

void zmq_bridge::tell_standing() {
  std::string why;
  for (const auto& link : links_) {
    if (link.start_id != 0) return tell_watchers(0, true, {}, nullptr);
    if (link.is_missed) why = why_missed(link);
    if (!link.refused.empty()) why = link.refused;
  }
  if (!why.empty()) tell_watchers(0, false, why, nullptr);
}

/// If two processes were each accepted by one broker and refused by another, one of them leaves.
void zmq_bridge::hear_of_twin(std::string_view body) {
  const auto twin = actor::decode<process_start>(body);
  const bool has_joined = std::ranges::any_of(links_, [](const broker_link& l) { return l.start_id != 0; });
  if (!twin || (has_joined && self_.start_id > twin->start_id) || !options_.on_number_taken) return;
  options_.on_number_taken();
}

void zmq_bridge::take_news(broker_link& link, const member_news& news) {
  if (news.process == 0 || news.process == self_.process || news.start_id == 0 || news.card.size() > card_bytes_max)
    return;
  if (!news.reachable) {
    const auto known = link.members.find(news.process);
    if (known == link.members.end() || known->second.start_id != news.start_id) return;
    link.members.erase(known);
    return review(news.process, shortened(news.why), true);
  }
  member is{.start_id = news.start_id, .card = news.card};
  if (options_.rules.read_role) {
    const auto role = options_.rules.read_role(news.card);
    if (role) {
      is.role = *role;
    } else {
      is.unfit = role.error().context;
    }
  }
  link.members[news.process] = std::move(is);
  review(news.process, {}, true);
}

void zmq_bridge::lose_link(broker_link& link, const std::string& why) {
  if (std::exchange(link.start_id, 0) == 0) return;
  log_line(log_level::warning, "bridge", "lost the broker at " + link.endpoint + ": " + why);
  const auto members = std::exchange(link.members, {});
  for (const auto& [process, is] : members) {
    review(process, why, false);
    // Messages in flight are lost, even to processes that another broker reaches: watchers are notified of these again.
    const auto known = peers_.find(process);
    const bool is_here = known != peers_.end() && !known->second.in_limbo && known->second.is.unfit.empty();
    if (is_here && known->second.is.start_id == is.start_id) tell_watchers(process, true, {}, &known->second.is);
  }
}

void zmq_bridge::review(actor::process_number process, const std::string& why, bool is_certain) {
  const member* found = nullptr;
  for (const auto& link : links_) {
    const auto at = link.members.find(process);
    if (link.start_id == 0 || at == link.members.end()) continue;
    const auto known = peers_.find(process);
    // Brokers may report a process and its successor at the same time: the latest report counts, but a process start
    // that is in use stays.
    if (found == nullptr || (known != peers_.end() && known->second.is.start_id == at->second.start_id))
      found = &at->second;
  }
  const auto known = peers_.find(process);
  if (found == nullptr) {
    if (known == peers_.end()) return;
    if (!is_certain) {
      // A broker that comes back within silence_max reaches it again.
      if (!std::exchange(known->second.in_limbo, true)) known->second.lost_at = clock::now();
      return;
    }
    peers_.erase(known);
    tell_watchers(process, false, why, nullptr);
    return;
  }
  if (known != peers_.end() && known->second.is.start_id != found->start_id) {
    tell_watchers(process, false, "it has restarted", nullptr);
  } else if (known != peers_.end() && !known->second.in_limbo && known->second.is.card == found->card) {
    return;
  }
  peers_[process] = {.is = *found};
  if (found->unfit.empty()) {
    tell_watchers(process, true, {}, found);
  } else {
    note_refusal(bridge_refusal::process, "process " + std::to_string(process) + ": " + found->unfit);
    tell_watchers(process, false, found->unfit, found);
  }
}

void zmq_bridge::tell_watchers(const actor::process_number process, bool reachable, std::string why, const member* is) {
  if (process != 0) {
    log_line(reachable ? log_level::info : log_level::warning, "bridge",
             "process " + std::to_string(process) + (reachable ? " is connected" : " is lost: " + why));
  }
  const actor::peer_state news{process, reachable, std::move(why), is != nullptr ? is->card : std::string(),
                               is != nullptr ? is->start_id : 0};
  for (const auto to : watchers_) deliver({envelope{.to = to, .id = actor::peer_state::id}, actor::encode(news)});
}

void zmq_bridge::deliver(const actor::frame& f) {
  if (!inside_.deliver(f.head, f.body)) actor::count_undelivered(errc::mailbox_full);
}

}  // namespace redline::transport
