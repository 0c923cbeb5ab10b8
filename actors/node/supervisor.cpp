#include "actors/node/supervisor.hpp"

namespace redline::actors {

supervisor::supervisor(actor::actor_context& context, std::vector<actor::restart_policy> groups,
                       actor::address temporary_owner, std::function<void(const std::string&)> give_up)
    : actor_of(context), groups_(std::move(groups)), temporary_owner_(temporary_owner), give_up_(std::move(give_up)) {}

void supervisor::on(const actor::actor_down& m) {
  for (auto& group : groups_) {
    if (!group.has(m.who)) continue;
    const auto again = group.on_down(m.who, context().now());
    if (again.empty()) {
      context().log(log_level::error, "actor " + actor::to_string(m.who) + " dies too often: " + m.reason);
      give_up_("actor " + actor::to_string(m.who) + " dies too often: " + m.reason);
      return;
    }
    for (const auto child : again) {
      context().log(log_level::warning, "restarting actor " + actor::to_string(child));
      const auto host = actor::make_address(actor::process_of(child), actor::worker_of(child), 0);
      context().send(host, actor::restart_actor{child});
    }
    return;
  }
  if (temporary_owner_.value != 0) context().send(temporary_owner_, m);
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::supervisor>;
