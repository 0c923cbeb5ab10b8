#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "scheduler/placement.hpp"

namespace redline::studies {

/// How a gateway of a simulated pool chooses workers: as Redline does, or as a load balancer would.
class fleet_placer {
 public:
  virtual ~fleet_placer() = default;
  virtual void note(scheduler::worker_number worker, const scheduler::worker_load& load) = 0;
  virtual void learn(scheduler::worker_number worker, const scheduler::kept_change& change) {
    (void)worker;
    (void)change;
  }
  virtual void remove(scheduler::worker_number worker) = 0;
  virtual std::optional<scheduler::worker_number> choose(const scheduler::placement_question& question) = 0;
  /// An answer that was placed there has ended or went elsewhere.
  virtual void leave(scheduler::worker_number worker) { (void)worker; }
};

/// All names that make_fleet_placer accepts.
inline constexpr std::string_view placer_names[] = {"redline", "random", "round-robin", "least-connections"};
result<std::unique_ptr<fleet_placer>> make_fleet_placer(std::string_view name);

}  // namespace redline::studies
