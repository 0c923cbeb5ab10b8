#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/cli/forward_probe.hpp"
#include "kernels/machine/machine_memory.hpp"
#include "kernels/machine_bounds.hpp"
#include "runtime/model/self_test.hpp"

namespace redline::actors::cli {

/// What a machine reaches with a number of threads.
struct measured_bounds {
  std::uint32_t threads = 0;
  kernels::machine_bounds reached;
};

/// The findings of `redline doctor --model` about a file.
struct model_findings {
  std::string path;
  std::string problem;  // why it cannot be served; else empty. The fields below are set as far as known.
  architecture::model_shape config;
  std::map<std::string, std::uint64_t> file_bytes;                             // tensor bytes by format
  std::uint64_t weight_bytes = 0;                                              // in memory
  std::array<std::uint64_t, kernels::all_element_types.size()> kv_bytes = {};  // for 1,000 tokens, by model::kv_type
  std::uint64_t context_bytes = 0;  // f16 KV of one sequence of the maximum length
  std::string numerics;             // with which it is measured
  std::vector<forward_cell> cells;  // with f16 KV
  kernels::held_memory held;        // memory of this process with the model
};
inline constexpr std::uint32_t kv_bytes_tokens = 1000;

/// The findings of `redline doctor`.
struct doctor_findings {
  kernels::cpu_share cpus;
  std::uint32_t threads_asked = 0;  // 0 means as many as may be used
  kernels::machine_memory memory;
  kernels::table_choice target;
  std::vector<measured_bounds> bounds;  // bounds of the chosen target; empty without one
  std::vector<model::self_check> checks;
  std::string checks_problem;  // why the self-test could not run; else empty
  double checks_seconds = 0;
  std::optional<model_findings> model;

  [[nodiscard]] std::uint32_t threads() const { return threads_asked != 0 ? threads_asked : cpus.usable(); }
  /// True if nothing was found that keeps this machine from serving, or from serving exactly.
  [[nodiscard]] bool healthy() const;
};

void print_findings(const doctor_findings& f, std::ostream& out);
nlohmann::ordered_json json_of(const doctor_findings& f);

}  // namespace redline::actors::cli
