#pragma once

#include "kernels/kernel_table.hpp"
#include "kernels/worker_team.hpp"

namespace redline::kernels {

/// What no kernel of this target can beat on this machine with this many threads, as measured just now.
struct machine_bounds {
  double read_bytes_per_second = 0;     // from memory, by all threads together
  double flops_per_second = 0;          // the table's multiply-adds counted twice, in registers
  double product_flops_per_second = 0;  // of its products of rows with weights in blocks, from caches, scales and all
  double float_flops_per_second = 0;    // of floats, where the table's own are of integers
};

/// Multiply-adds that an exponential takes the time of, 16 lanes each.
inline constexpr double multiply_adds_per_exponential = 11;

/// Takes about `seconds` and reads `bytes` of fresh memory repeatedly; make it several times the last-level cache.
machine_bounds measure_bounds(const kernel_table& table, worker_team& team, double seconds = 0.5,
                              std::size_t bytes = std::size_t{256} << 20);

}  // namespace redline::kernels
