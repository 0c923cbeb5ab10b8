#pragma once

#include <tuple>

#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"

namespace redline::actor {

/// Tells a sender that its message could not be handed over: full mailbox, dead or unknown actor, no route, too long.
struct undeliverable {
  static constexpr message_id id{0x0101};
  static constexpr std::string_view name = "undeliverable";
  static constexpr bool control = true;

  address to;
  message_id what;
  failure why;
  std::uint64_t about = 0;  // the message's subject
  static constexpr auto fields(auto& self) { return std::tie(self.to, self.what, self.why, self.about); }
};

/// An actor died of an exception. Sent to the supervisor of its worker.
struct actor_down {
  static constexpr message_id id{0x0102};
  static constexpr std::string_view name = "actor_down";
  static constexpr bool control = true;

  address who;
  std::string reason;
  static constexpr auto fields(auto& self) { return std::tie(self.who, self.reason); }
};

/// Asks a worker to make an actor anew under its old address. Sent to the worker itself (actor number 0).
struct restart_actor {
  static constexpr message_id id{0x0103};
  static constexpr std::string_view name = "restart_actor";
  static constexpr bool control = true;

  address who;
  static constexpr auto fields(auto& self) { return std::tie(self.who); }
};

/// Asks a worker to stop all its actors and leave its loop (actor number 0).
struct stop_worker {
  static constexpr message_id id{0x0104};
  static constexpr std::string_view name = "stop_worker";
  static constexpr bool control = true;

  static constexpr auto fields(auto&) { return std::tie(); }
};

/// A process was reached or lost, says something else of itself, or may not take part. Sent by the network bridge to
/// its subscribers. A process that was out of reach for a moment is told again as reachable: what was sent to it
/// meanwhile is lost.
struct peer_state {
  static constexpr message_id id{0x0105};
  static constexpr std::string_view name = "peer_state";
  static constexpr bool control = true;

  process_number process = 0;  // 0: this one; reachable where a broker has taken it
  bool reachable = false;
  std::string why_not;     // where more is known than that it is gone
  std::string card;        // of a reachable one: what it says of itself
  std::uint64_t life = 0;  // what it drew when it started
  static constexpr auto fields(auto& self) {
    return std::tie(self.process, self.reachable, self.why_not, self.card, self.life);
  }
};

}  // namespace redline::actor
