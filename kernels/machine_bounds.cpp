#include "kernels/machine_bounds.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "kernels/dispatch.hpp"
#include "kernels/int8_tables.hpp"
#include "kernels/machine/memory.hpp"
#include "kernels/packed_weights.hpp"
#include "kernels/prepared_rows.hpp"

namespace redline::kernels {
namespace {

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// The best of repeated runs of `body`, in units per second: a disturbed run understates the machine.
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

/// The table of the same target that computes products with floats.
const kernel_table& float_table_of(const kernel_table& table) {
  for (const target_info& target : list_targets()) {
    if (target.table != nullptr && int8_table_of(*target.table) == &table) return *target.table;
  }
  return table;
}

/// Uses a matrix and rows of zeros that stay in each core's caches; zeros are no faster on any CPU.
double product_rate(const kernel_table& table, worker_team& team, double seconds) {
  constexpr std::size_t outputs = 64, columns = 896, rows = 48, times = 8;
  constexpr weight_type type = weight_type::q8_0;
  const std::vector<std::byte> zeros(outputs * row_bytes(type, columns));
  const packed_weights w(table, team, type, outputs, columns, zeros.data());
  const std::vector<float> x(rows * columns);
  const prepared_rows prepared(table, x.data(), columns, rows, columns);
  std::vector<float> y(team.size() * rows * outputs);
  const std::size_t items = std::size_t{team.size()} * 4;
  return best_rate(2.0 * static_cast<double>(items * times * outputs * columns * rows), seconds, [&] {
    team.parallel_for(items, [&](std::size_t, std::uint32_t worker) {
      for (std::size_t i = 0; i < times; ++i) {
        table.gemm({.w = w.view(),
                    .panel_begin = 0,
                    .panel_end = panels_for(outputs),
                    .x = x.data(),
                    .x_stride = columns,
                    .rows = rows,
                    .y = y.data() + worker * rows * outputs,
                    .y_stride = outputs,
                    .prepared = prepared.data()});
      }
    });
  });
}

}  // namespace

machine_bounds measure_bounds(const kernel_table& table, worker_team& team, double seconds, std::size_t bytes) {
  constexpr std::size_t piece_floats = std::size_t{1} << 17;
  constexpr std::size_t iterations = 40000;
  const std::size_t pieces = std::max<std::size_t>(1, bytes / (piece_floats * sizeof(float)));
  const memory_block memory(pieces * piece_floats * sizeof(float));
  const auto* floats = reinterpret_cast<const float*>(memory.data());
  team.parallel_for(pieces, [&](std::size_t i, std::uint32_t) {  // touched by the thread that will read it
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
  const auto rate_of = [&](const kernel_table& t) {
    const double flops = 2.0 * static_cast<double>(items * iterations * t.multiply_adds_per_iteration);
    return best_rate(flops, seconds / 6, [&] {
      team.parallel_for(items, [&](std::size_t, std::uint32_t) {
        sink.store(t.multiply_add_loop(iterations), std::memory_order_relaxed);
      });
    });
  };
  found.flops_per_second = rate_of(table);
  found.float_flops_per_second = multiplies_integers(table) ? rate_of(float_table_of(table)) : found.flops_per_second;
  found.product_flops_per_second = product_rate(table, team, seconds / 6);
  return found;
}

}  // namespace redline::kernels
