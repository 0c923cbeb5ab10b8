#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/actor/worker.hpp"
#include "tests/support/hand_link.hpp"

namespace redline::test {

/// Several workers on one thread, joined by a network that delays frames and interleaves wires by a seed, but keeps the
/// order of each wire. The same seed and story give the same run, event by event.
class actor_world {
 public:
  explicit actor_world(std::uint64_t seed) : env_(seed) {}

  actor::worker& add_worker(actor::process_number process, std::uint16_t number);
  [[nodiscard]] virtual_environment& env() { return env_; }
  [[nodiscard]] actor::worker& worker_at(actor::address where) { return *nodes_.at(actor::node_of(where)).core; }

  /// Called with every frame that is sent; may change it, or drop it by returning false.
  std::function<bool(actor::frame&)> on_wire;

  /// The time that a frame is in transit, instead of a random one.
  std::function<microseconds(const actor::frame&)> delay_of;

  template<actor::message M>
  void send(actor::address to, const M& m, actor::address from = {}) {
    (void)post(frame_of(to, from, m));
  }
  /// Kills the permanent actor and restarts it at once.
  void restart(actor::address who);
  /// Steps until `done` (true) or until `limit` has passed on the virtual clock (false). Calls `each_step` in between.
  bool run_until(const std::function<bool()>& done, microseconds limit, const std::function<void()>& each_step = {});
  /// Steps for this long on the virtual clock.
  void run_for(microseconds time) {
    (void)run_until([] { return false; }, time);
  }
  /// A hash of all frames delivered: equal digests mean equal runs.
  [[nodiscard]] std::uint64_t digest() const { return digest_; }

 private:
  class wire_link;
  struct node {
    std::unique_ptr<actor::link> wire;
    std::unique_ptr<actor::worker> core;
  };
  struct parcel {
    instant due;
    actor::frame content;
  };

  result<void> post(actor::frame f);
  bool sweep();
  [[nodiscard]] std::optional<instant> next_event();

  virtual_environment env_;
  std::map<std::uint32_t, node> nodes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<parcel>> wires_;  // by (from, to)
  std::uint64_t digest_ = 0;
};

}  // namespace redline::test
