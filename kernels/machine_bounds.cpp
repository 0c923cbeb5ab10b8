#include "kernels/machine_bounds.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "kernels/machine/memory.hpp"

namespace redline::kernels {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// The best of repeated runs of `body`, in units per second: a disturbed run is not what the machine can do.
template<class Body>
double best_rate(double units, double seconds, Body body) {
  double best = 0;
  const auto begin = clock::now();
  do {
    const auto start = clock::now();
    body();
    best = std::max(best, units / seconds_since(start));
  } while (seconds_since(begin) < seconds);
  return best;
}

}  // namespace

machine_bounds measure_bounds(const kernel_table& table, worker_team& team, double seconds, std::size_t bytes) {
  constexpr std::size_t piece_floats = std::size_t{1} << 17;
  constexpr std::size_t iterations = 40000;
  const std::size_t pieces = std::max<std::size_t>(1, bytes / (piece_floats * sizeof(float)));
  const memory_block memory(pieces * piece_floats * sizeof(float));
  const auto* floats = reinterpret_cast<const float*>(memory.data());
  team.parallel_for(pieces, [&](std::size_t i, std::uint32_t) {  // touched by who will read it
    std::memset(memory.data() + i * piece_floats * sizeof(float), 0, piece_floats * sizeof(float));
  });
  std::atomic<float> sink{0};
  machine_bounds found;
  found.read_bytes_per_second = best_rate(static_cast<double>(memory.size()), seconds / 2, [&] {
    team.parallel_for(pieces, [&](std::size_t i, std::uint32_t) {
      sink.store(table.read_loop(floats + i * piece_floats, piece_floats), std::memory_order_relaxed);
    });
  });
  const std::size_t items = std::size_t{team.size()} * 4;
  const double flops = 2.0 * static_cast<double>(items * iterations * table.multiply_adds_per_iteration);
  found.flops_per_second = best_rate(flops, seconds / 2, [&] {
    team.parallel_for(items, [&](std::size_t, std::uint32_t) {
      sink.store(table.multiply_add_loop(iterations), std::memory_order_relaxed);
    });
  });
  return found;
}

}  // namespace redline::kernels
