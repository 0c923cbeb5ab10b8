#pragma once

#include <string>

#include "bench/studies/fleet/fleet_plan.hpp"

namespace redline::studies {

/// The flags are in bench/studies/commands.cpp. Prints tables and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct simulate_options {
  std::string curve;  // path of a file
  fleet_options fleet;
  std::string json;
};
int run_simulate(const simulate_options& options);

struct plan_options {
  std::string curve;
  fleet_options fleet;
  service_level level;
  std::string json;
};
int run_plan(const plan_options& options);

}  // namespace redline::studies
