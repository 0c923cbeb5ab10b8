#pragma once

#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/dispatch.hpp"
#include "kernels/machine_bounds.hpp"

namespace redline::bench {

/// All targets that this CPU can run.
std::vector<const kernels::kernel_table*> usable_tables();
/// The bounds that the shares in the counters refer to, measured once per target on one thread.
const kernels::machine_bounds& bounds_of(const kernels::kernel_table& table);
/// Adds GFLOP/s, GB/s and their shares of the bounds.
void count(benchmark::State& state, const kernels::kernel_table& table, double flops, double bytes);

void register_gemm();
void register_attention();
void register_rotate();

}  // namespace redline::bench
