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

/// What `redline doctor --model` found out about a file.
struct model_findings {
  std::string path;
  std::string problem;  // why it cannot be served here; empty when it can. What is known until then is below.
  architecture::model_shape config;
  std::map<std::string, std::uint64_t> file_bytes;                             // of tensors, by format
  std::uint64_t weight_bytes = 0;                                              // in memory
  std::array<std::uint64_t, kernels::all_element_types.size()> kv_bytes = {};  // of 1,000 tokens, by model::kv_type
  std::uint64_t context_bytes = 0;  // f16 keys and values of one sequence of the whole context
  std::string numerics;             // that it is tried with
  std::vector<forward_cell> cells;  // with f16 keys and values
  kernels::held_memory held;        // by this process with the model
};
inline constexpr std::uint32_t kv_bytes_tokens = 1000;

/// What `redline doctor` found out.
struct doctor_findings {
  kernels::cpu_share cpus;
  std::uint32_t threads_asked = 0;  // 0: as many as may be used
  kernels::machine_memory memory;
  kernels::table_choice target;
  std::vector<measured_bounds> bounds;  // of the chosen target; without one, none
  std::vector<model::self_check> checks;
  std::string checks_problem;  // why the self-test could not run; empty when it could
  double checks_seconds = 0;
  std::optional<model_findings> model;

  [[nodiscard]] std::uint32_t threads() const { return threads_asked != 0 ? threads_asked : cpus.usable(); }
  /// Nothing was found that keeps this machine from serving, or from serving exactly.
  [[nodiscard]] bool healthy() const;
};

void print_findings(const doctor_findings& f, std::ostream& out);
nlohmann::ordered_json json_of(const doctor_findings& f);

}  // namespace redline::actors::cli
