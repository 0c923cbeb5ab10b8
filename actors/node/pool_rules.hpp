#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/messages/pool_messages.hpp"
#include "runtime/actor/protocol.hpp"
#include "transport/zmq/pool_wire.hpp"

namespace redline::actors {

/// Which messages a process may send to others, by its role.
[[nodiscard]] bool may_send(process_role role, actor::message_id what);

/// Which processes may join a pool and which messages they may send. Gateways work with workers; no other pairs do.
[[nodiscard]] transport::pool_rules make_pool_rules();

/// What a gateway with a model file of its own requires of its workers: the same model.
struct own_model {
  std::uint64_t model = 0;
  std::uint64_t vocabulary = 0;
};
/// Why such a gateway cannot use a worker, and how to fix that; null if it can.
[[nodiscard]] std::optional<std::string> why_unfit(const own_model& own, const process_card& card);

}  // namespace redline::actors
