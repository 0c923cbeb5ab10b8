#include "tests/support/actor_world.hpp"

#include <algorithm>
#include <string_view>

namespace redline::test {

using actor::frame;

class actor_world::wire_link final : public actor::link {
 public:
  explicit wire_link(actor_world& world) : world_(world) {}
  result<void> send(const frame& f) override { return world_.post(f); }
  std::optional<frame> receive() override { return std::nullopt; }  // the world delivers
  void wait(microseconds) override {}

 private:
  actor_world& world_;
};

actor::worker& actor_world::add_worker(actor::process_number process, std::uint16_t number) {
  auto& n = nodes_[actor::node_of(actor::make_address(process, number, 0))];
  n.wire = std::make_unique<wire_link>(*this);
  n.core = std::make_unique<actor::worker>(process, number, *n.wire, env_);
  return *n.core;
}

result<void> actor_world::post(frame f) {
  const auto to = actor::node_of(f.head.to);
  if (!nodes_.contains(to)) return failure{errc::unreachable, "no worker at " + actor::to_string(f.head.to)};
  if (on_wire && !on_wire(f)) return {};  // lost in transit, which the sender cannot know
  auto& wire = wires_[{actor::node_of(f.head.from), to}];
  // Delays are mostly short and sometimes long, like a queue somewhere.
  const microseconds drawn{env_.below(16) == 0 ? env_.below(20'000) : env_.below(200)};
  const microseconds delay = delay_of ? delay_of(f) : drawn;
  const instant earliest = wire.empty() ? env_.now() : wire.back().due;
  wire.push_back({std::max(env_.now() + delay, earliest), std::move(f)});
  return {};
}

void actor_world::restart(actor::address who) {
  const auto host = actor::make_address(actor::process_of(who), actor::worker_of(who), 0);
  nodes_.at(actor::node_of(who)).core->deliver(frame_of(host, {}, actor::restart_actor{who}));
}

/// Steps every wire and worker once, in random order; returns false if none had anything to do.
bool actor_world::sweep() {
  bool moved = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> due;
  for (const auto& [ends, wire] : wires_) {
    if (!wire.empty() && wire.front().due <= env_.now()) due.push_back(ends);
  }
  while (!due.empty() && env_.below(8) != 0) {
    const std::size_t pick = env_.below(due.size());
    auto& wire = wires_.at(due[pick]);
    frame f = std::move(wire.front().content);
    wire.pop_front();
    if (wire.empty() || wire.front().due > env_.now()) due.erase(due.begin() + static_cast<std::ptrdiff_t>(pick));
    digest_ =
        digest_ * 0x9e3779b97f4a7c15 + std::hash<std::string_view>{}(f.body) + f.head.to.value * 31 + f.head.id.value;
    nodes_.at(actor::node_of(f.head.to)).core->deliver(std::move(f));
    moved = true;
  }
  if (!due.empty()) moved = true;
  for (auto& [where, n] : nodes_) {
    if (env_.below(3) == 0) {
      moved = true;  // this thread was not scheduled; it may have work
      continue;
    }
    if (n.core->run_ready())
      moved = true;
    else if (n.core->run_idle())
      moved = true;
  }
  return moved;
}

std::optional<instant> actor_world::next_event() {
  std::optional<instant> next;
  const auto consider = [&](instant when) { next = next ? std::min(*next, when) : when; };
  for (const auto& [ends, wire] : wires_) {
    if (!wire.empty()) consider(wire.front().due);
  }
  for (auto& [where, n] : nodes_) {
    if (const auto timer = n.core->fire_timers()) consider(*timer);
  }
  return next;
}

bool actor_world::run_until(const std::function<bool()>& done, microseconds limit,
                            const std::function<void()>& each_step) {
  const instant end = env_.now() + limit;
  while (!done()) {
    if (each_step) each_step();
    if (sweep()) continue;
    const auto next = next_event();
    if (!next || *next > end) {
      env_.advance_to(end);
      return done();
    }
    env_.advance_to(*next);
    (void)next_event();  // fires the timers that are due
  }
  return true;
}

}  // namespace redline::test
