#pragma once

#include "kernels/kernel_table.hpp"
#include "kernels/worker_team.hpp"

namespace redline::kernels {

/// Limits that no kernel of this target can exceed on this machine with this many threads, as just measured.
struct machine_bounds {
  double read_bytes_per_second = 0;     // from memory, by all threads together
  double flops_per_second = 0;          // the table's multiply-adds in registers, each counted as two
  double product_flops_per_second = 0;  // its products of rows with weights in blocks, from caches, including scales
  double float_flops_per_second = 0;    // float products, if the table's own are integers
};

/// The number of 16-lane multiply-adds that take as long as one exponential.
inline constexpr double multiply_adds_per_exponential = 11;

/// Takes about `seconds` and reads `bytes` of fresh memory repeatedly; make it several times the last-level cache.
machine_bounds measure_bounds(const kernel_table& table, worker_team& team, double seconds = 0.5,
                              std::size_t bytes = std::size_t{256} << 20);

}  // namespace redline::kernels
