#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/studies/fleet/fleet_simulation.hpp"

namespace redline::studies {

/// Everything that was asked and found. No wall time: the same options give the same JSON.
nlohmann::ordered_json to_json(const fleet_options& options, const pass_curve& curve, const fleet_result& r);
void print_fleet(const fleet_options& options, const pass_curve& curve, const fleet_result& r);

}  // namespace redline::studies
