#pragma once

#include <deque>
#include <span>
#include <vector>

#include "runtime/actor/address.hpp"
#include "runtime/base/environment.hpp"

namespace redline::actor {

/// How often children may be restarted before their group gives up.
struct restart_limit {
  std::uint32_t count_max = 5;
  microseconds within{10'000'000};
};

/// The strategies are named as in OTP: restart only the child that died, or also those started after it.
enum class restart_strategy : std::uint8_t { one_for_one, rest_for_one };

/// Decides what to restart when a child of a group dies. It owns no actors and has no clock.
class restart_policy {
 public:
  /// children: in their order of start.
  restart_policy(restart_strategy strategy, restart_limit limit, std::vector<address> children);

  [[nodiscard]] bool has(address child) const;
  /// The children to restart, in order; empty if the limit is used up and the group gives up.
  std::vector<address> on_down(address child, instant now);

 private:
  restart_strategy strategy_;
  restart_limit limit_;
  std::vector<address> children_;
  std::deque<instant> restarts_;
};

}  // namespace redline::actor
