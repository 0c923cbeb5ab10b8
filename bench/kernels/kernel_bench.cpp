// Measures how near each kernel of each target comes to the machine's bounds, on one thread.

#include "bench/kernels/kernel_bench.hpp"

#include <iostream>
#include <map>

namespace redline::bench {

std::vector<const kernels::kernel_table*> usable_tables() {
  std::vector<const kernels::kernel_table*> tables;
  for (const auto& target : kernels::list_targets()) {
    if (target.table != nullptr) tables.push_back(target.table);
  }
  return tables;
}

const kernels::machine_bounds& bounds_of(const kernels::kernel_table& table) {
  static std::map<const kernels::kernel_table*, kernels::machine_bounds> known;
  const auto found = known.find(&table);
  if (found != known.end()) return found->second;
  kernels::worker_team alone(1);
  return known.emplace(&table, kernels::measure_bounds(table, alone)).first->second;
}

void count(benchmark::State& state, const kernels::kernel_table& table, double flops, double bytes) {
  const kernels::machine_bounds& bounds = bounds_of(table);
  const auto rate = benchmark::Counter::kIsIterationInvariantRate;
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, rate);
  state.counters["of peak"] = benchmark::Counter(flops / bounds.flops_per_second, rate);
  state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, rate);
  state.counters["of read"] = benchmark::Counter(bytes / bounds.read_bytes_per_second, rate);
}

}  // namespace redline::bench

int main(int argc, char** argv) {
  using namespace redline;
  for (const auto* table : bench::usable_tables()) {
    const auto& b = bench::bounds_of(*table);
    std::cout << table->name << ": " << b.read_bytes_per_second / 1e9 << " GB/s read, " << b.flops_per_second / 1e9
              << " GFLOP/s\n";
  }
  bench::register_gemm();
  bench::register_attention();
  bench::register_rotate();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
