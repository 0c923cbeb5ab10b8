#pragma once

#include <string_view>
#include <tuple>

#include "runtime/actor/protocol.hpp"

namespace redline::actors {

/// The gateway is to take no more requests; those in progress go on.
struct drain_gateway {
  static constexpr actor::message_id id{0x0801};
  static constexpr std::string_view name = "drain_gateway";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The drain took too long: the gateway is to end what is still in progress with an error.
struct cancel_everything {
  static constexpr actor::message_id id{0x0802};
  static constexpr std::string_view name = "cancel_everything";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The gateway's own heartbeat, on which it asks for reports.
struct gateway_tick {
  static constexpr actor::message_id id{0x0803};
  static constexpr std::string_view name = "gateway_tick";
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The gateway's message to itself: the next part of a long answer may be sent.
struct answer_part_due {
  static constexpr actor::message_id id{0x0804};
  static constexpr std::string_view name = "answer_part_due";

  std::uint64_t exchange = 0;
  static constexpr auto fields(auto& self) { return std::tie(self.exchange); }
};

}  // namespace redline::actors
