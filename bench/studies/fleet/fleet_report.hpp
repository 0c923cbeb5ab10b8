#pragma once

#include <nlohmann/json_fwd.hpp>

#include "bench/studies/fleet/fleet_simulation.hpp"

namespace redline::studies {

/// All options and results. Wall time is left out, so that the same options give the same JSON.
nlohmann::ordered_json to_json(const fleet_options& options, const pass_curve& curve, const fleet_result& r);
void print_fleet(const fleet_options& options, const pass_curve& curve, const fleet_result& r);

}  // namespace redline::studies
