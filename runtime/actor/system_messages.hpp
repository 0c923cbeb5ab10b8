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

/// A process was reached or lost, or may not take part. Sent by the network bridge to its subscribers. When a
/// process is replaced by its successor, the loss is told before the successor.
struct peer_state {
  static constexpr message_id id{0x0105};
  static constexpr std::string_view name = "peer_state";
  static constexpr bool control = true;

  std::uint16_t process = 0;
  bool reachable = false;
  std::string why_not;  // it is there, but refused
  static constexpr auto fields(auto& self) { return std::tie(self.process, self.reachable, self.why_not); }
};

}  // namespace redline::actor
