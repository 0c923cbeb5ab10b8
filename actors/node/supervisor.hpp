#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/actor/restart_policy.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

/// Restarts the permanent actors of its process when they die, within limits; reports deaths of temporary ones
/// (sessions) to their owner; ends the process when a restart limit is used up.
class supervisor final : public actor::actor_of<supervisor> {
 public:
  using accepts = actor::protocol<actor::actor_down>;

  /// temporary_owner: receives actor_down for actors in no group; may be null. give_up: called once with the reason.
  supervisor(actor::actor_context& context, std::vector<actor::restart_policy> groups, actor::address temporary_owner,
             std::function<void(const std::string&)> give_up);

  void on(const actor::actor_down& m);

 private:
  std::vector<actor::restart_policy> groups_;
  actor::address temporary_owner_;
  std::function<void(const std::string&)> give_up_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::supervisor>;
