#include "bench/studies/fleet/fleet_plan.hpp"

#include <algorithm>
#include <cmath>

namespace redline::studies {
namespace {

struct search {
  fleet_options options;
  const pass_curve& curve;
  service_level level;
  fleet_plan plan;

  result<bool> holds(std::uint32_t workers, bool with_loss) {
    if (const auto* known = plan.find(workers, with_loss)) return known->holds;
    fleet_options one = options;
    one.workers = workers;
    one.lose_one_for_good = with_loss;
    fleet_trial trial{.workers = workers, .with_loss = with_loss, .holds = true, .result = {}};
    double worst = -1;
    for (std::uint32_t run = 0; run < planned_runs && trial.holds; ++run) {
      one.seed = options.seed + run;
      REDLINE_TRY_ASSIGN(const fleet_result r, simulate_fleet(one, curve));
      const double used = std::max(r.first_token_ms.at(level.percentile) / level.first_token_ms,
                                   r.time_per_token_ms.at(level.percentile) / level.time_per_token_ms);
      trial.holds = r.answers > 0 && r.failed == 0 && used <= 1;
      if (trial.holds && used <= worst) continue;
      worst = used;
      trial.result = r;
    }
    plan.trials.push_back(trial);
    return trial.holds;
  }

  /// The smallest number in (too_few, enough] with which the level holds.
  result<std::uint32_t> bisect(std::uint32_t too_few, std::uint32_t enough) {
    while (enough - too_few > 1) {
      const std::uint32_t middle = too_few + (enough - too_few) / 2;
      REDLINE_TRY_ASSIGN(const bool does, holds(middle, false));
      (does ? enough : too_few) = middle;
    }
    return enough;
  }
};

}  // namespace

const fleet_trial* fleet_plan::find(std::uint32_t simulated_workers, bool with_loss) const {
  const auto at = std::find_if(trials.begin(), trials.end(), [&](const fleet_trial& t) {
    return t.workers == simulated_workers && t.with_loss == with_loss;
  });
  return at == trials.end() ? nullptr : &*at;
}

result<fleet_plan> plan_fleet(const fleet_options& options, const pass_curve& curve, const service_level& level) {
  search s{options, curve, level, {}};
  s.options.loss_per_minute = 0;
  s.options.sessions = std::min(options.sessions, planned_users_max);
  s.plan.scale = static_cast<double>(options.sessions) / s.options.sessions;
  std::uint32_t too_few = 0;
  std::uint32_t enough = 1;
  for (;; too_few = enough, enough = std::min(2 * enough, s.options.sessions)) {
    REDLINE_TRY_ASSIGN(const bool does, s.holds(enough, false));
    if (does) break;
    if (enough == s.options.sessions) {
      const auto& r = s.plan.trials.back().result;
      const auto whole = [](double ms) { return std::to_string(std::lround(ms)); };
      return failure{errc::invalid_argument,
                     "not even a worker for each user gives this: expected a first token within " +
                         whole(level.first_token_ms) + " ms and each further one within " +
                         whole(level.time_per_token_ms) + " ms for " + std::to_string(level.percentile) +
                         " of 100 answers, found " + whole(r.first_token_ms.at(level.percentile)) + " and " +
                         whole(r.time_per_token_ms.at(level.percentile)) +
                         " ms; allow more, or take a faster machine or a smaller model"};
    }
  }
  REDLINE_TRY_ASSIGN(const std::uint32_t fewest, s.bisect(too_few, enough));
  std::uint32_t wanted = fewest + 1;
  for (;; ++wanted) {
    REDLINE_TRY_ASSIGN(const bool does, s.holds(wanted, true));
    if (does || wanted >= fewest + fewest / 2 + 8) break;
  }
  const auto scaled = [&](std::uint32_t n) { return static_cast<std::uint32_t>(std::ceil(n * s.plan.scale)); };
  s.plan.undisturbed = scaled(fewest);
  // In a larger pool one worker is a smaller share, so its loss costs less than in the simulated pool.
  s.plan.workers = s.plan.scale > 1 ? scaled(fewest) + (wanted - fewest) : wanted;
  return std::move(s.plan);
}

}  // namespace redline::studies
