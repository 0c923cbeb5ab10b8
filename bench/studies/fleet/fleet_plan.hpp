#pragma once

#include <optional>
#include <vector>

#include "bench/studies/fleet/fleet_simulation.hpp"

namespace redline::studies {

/// The service level that users are promised.
struct service_level {
  double first_token_ms = 1000;
  double time_per_token_ms = 100;
  std::uint32_t percentile = 99;  // of the answers that must meet the level: 50, 95 or 99
};

struct fleet_trial {
  std::uint32_t workers = 0;
  bool with_loss = false;  // one worker is killed and does not come back
  bool holds = false;
  fleet_result result;  // the run nearest to the level, or the first one beyond it
};

struct fleet_plan {
  std::uint32_t workers = 0;      // the level holds with these even when one is lost
  std::uint32_t undisturbed = 0;  // the fewest with which the level holds when none is lost
  double scale = 1;               // requested users divided by simulated users
  std::vector<fleet_trial> trials;
  /// The simulated run of the planned number of workers.
  [[nodiscard]] const fleet_trial* find(std::uint32_t simulated_workers, bool with_loss) const;
};

/// The most users in one simulation; a larger pool is planned as several pools of that size.
inline constexpr std::uint32_t planned_users_max = 4000;
/// The runs per number of workers, each with other users. The level must hold in all of them, because with few users it
/// may hold by chance in one.
inline constexpr std::uint32_t planned_runs = 3;

/// Simulates to find the fewest workers that give `options.sessions` users this level. Fails when even one worker per
/// user is not enough. options.workers is ignored.
result<fleet_plan> plan_fleet(const fleet_options& options, const pass_curve& curve, const service_level& level);

}  // namespace redline::studies
