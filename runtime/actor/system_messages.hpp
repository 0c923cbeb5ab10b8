#pragma once

#include <tuple>

#include "runtime/actor/address.hpp"
#include "runtime/actor/protocol.hpp"

namespace redline::actor {

/// Reports to a sender that its message was not delivered: full mailbox, dead or unknown actor, no route, too long.
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

/// Reports that an actor died of an exception. Sent to the supervisor of its worker.
struct actor_down {
  static constexpr message_id id{0x0102};
  static constexpr std::string_view name = "actor_down";
  static constexpr bool control = true;

  address who;
  std::string reason;
  static constexpr auto fields(auto& self) { return std::tie(self.who, self.reason); }
};

/// Asks a worker to make an actor again under its old address. Sent to the worker itself (actor number 0).
struct restart_actor {
  static constexpr message_id id{0x0103};
  static constexpr std::string_view name = "restart_actor";
  static constexpr bool control = true;

  address who;
  static constexpr auto fields(auto& self) { return std::tie(self.who); }
};

/// Asks a worker to stop all its actors and leave its loop. Sent to the worker itself (actor number 0).
struct stop_worker {
  static constexpr message_id id{0x0104};
  static constexpr std::string_view name = "stop_worker";
  static constexpr bool control = true;

  static constexpr auto fields(auto&) { return std::tie(); }
};

/// Reports that a process was reached or lost, changed its card, or may not take part. Sent by the network bridge to
/// its subscribers. A process that was briefly out of reach is reported as reachable again: what was sent to it
/// meanwhile is lost.
struct peer_state {
  static constexpr message_id id{0x0105};
  static constexpr std::string_view name = "peer_state";
  static constexpr bool control = true;

  process_number process = 0;  // 0 means this process, which is reachable if a broker has accepted it
  bool reachable = false;
  std::string why_not;         // empty if nothing more than the loss is known
  std::string card;            // the card of a reachable process
  std::uint64_t start_id = 0;  // the random number that it drew when it started
  static constexpr auto fields(auto& self) {
    return std::tie(self.process, self.reachable, self.why_not, self.card, self.start_id);
  }
};

}  // namespace redline::actor
