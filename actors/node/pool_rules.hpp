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

/// Who may take part in a pool and say what: gateways work with workers, and nobody else with each other.
[[nodiscard]] transport::pool_rules make_pool_rules();

/// What a gateway with a model file of its own asks of the workers it uses: the same model.
struct own_model {
  std::uint64_t model = 0;
  std::uint64_t vocabulary = 0;
};
/// Why a worker is of no use to it, and what to do; null: it is.
[[nodiscard]] std::optional<std::string> why_unfit(const own_model& own, const process_card& card);

}  // namespace redline::actors
