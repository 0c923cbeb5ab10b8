#pragma once

#include <optional>
#include <vector>

#include "bench/studies/fleet/fleet_simulation.hpp"

namespace redline::studies {

/// What users are promised.
struct service_level {
  double first_token_ms = 1000;
  double time_per_token_ms = 100;
  std::uint32_t percentile = 99;  // of the answers; 50, 95 or 99
};

struct fleet_trial {
  std::uint32_t workers = 0;
  bool with_loss = false;  // one of them is killed and does not come back
  bool holds = false;
  fleet_result result;  // of its runs the one nearest to the level, or the first beyond it
};

struct fleet_plan {
  std::uint32_t workers = 0;      // wanted: the level holds, also when one is lost
  std::uint32_t undisturbed = 0;  // the fewest with which it holds when none is lost
  double scale = 1;               // users asked about by users simulated
  std::vector<fleet_trial> trials;
  /// The run of the wanted number of workers, as simulated.
  [[nodiscard]] const fleet_trial* find(std::uint32_t simulated_workers, bool with_loss) const;
};

/// Most users that one simulation has; a larger pool is planned as so many pools of that size.
inline constexpr std::uint32_t planned_users_max = 4000;
/// Runs of one number of workers, with other users each: the level is to hold in all of them, as in one of few users it
/// may hold by chance.
inline constexpr std::uint32_t planned_runs = 3;

/// Searches for the fewest workers that give `options.sessions` users this level, by simulation; fails when not even
/// a worker for every user does. options.workers is not looked at.
result<fleet_plan> plan_fleet(const fleet_options& options, const pass_curve& curve, const service_level& level);

}  // namespace redline::studies
