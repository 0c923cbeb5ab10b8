// A few rows times a packed matrix, for every format and target: 4864 x 896, which stays in the caches, and, for one
// row, 30000 x 896, which does not.

#include <cstring>
#include <random>

#include "bench/kernels/kernel_bench.hpp"
#include "kernels/packed_weights.hpp"

namespace redline::bench {
namespace {

using namespace kernels;

/// Random numbers, or random blocks with small scales. The values are ordinary, as denormal ones would cost extra.
std::vector<std::byte> random_matrix(const kernel_table& table, weight_type type, std::size_t rows,
                                     std::size_t columns) {
  std::vector<std::byte> bytes(rows * row_bytes(type, columns));
  std::mt19937 random(7);
  if (block_columns(type) == 1) {
    std::vector<float> floats(rows * columns);
    for (float& x : floats) x = static_cast<float>(random() % 2001) * 0.001F - 1;
    if (type == weight_type::f32) {
      std::memcpy(bytes.data(), floats.data(), bytes.size());
    } else {
      table.narrow(type == weight_type::f16 ? element_type::f16 : element_type::bf16, floats.data(), floats.size(),
                   bytes.data());
    }
    return bytes;
  }
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const std::uint32_t word = (random() & 0xbfffbfff) | 0x10001000;  // halves from 2^-11 to 2
    std::memcpy(bytes.data() + i, &word, 4);
  }
  return bytes;
}

void gemm(benchmark::State& state, const kernel_table& table, weight_type type, std::size_t outputs,
          std::size_t columns, std::size_t rows) {
  worker_team alone(1);
  const packed_weights w(table, alone, type, outputs, columns, random_matrix(table, type, outputs, columns).data());
  const std::vector<float> x(rows * columns, 0.5F);
  std::vector<float> y(rows * outputs);
  for (auto _ : state) {
    table.gemm({.w = w.view(),
                .panel_begin = 0,
                .panel_end = panels_for(outputs),
                .x = x.data(),
                .x_stride = columns,
                .rows = rows,
                .y = y.data(),
                .y_stride = outputs});
    benchmark::ClobberMemory();
  }
  count(state, table, 2.0 * static_cast<double>(rows * outputs * columns), static_cast<double>(w.size_bytes()));
}

void add(const kernel_table& table, weight_type type, std::size_t outputs, std::size_t columns, std::size_t rows) {
  const std::string name = "gemm/" + std::string(table.name) + "/" + std::string(name_of(type)) + "/" +
                           std::to_string(rows) + "x" + std::to_string(outputs) + "x" + std::to_string(columns);
  benchmark::RegisterBenchmark(name.c_str(), [&table, type, outputs, columns, rows](benchmark::State& state) {
    gemm(state, table, type, outputs, columns, rows);
  });
}

}  // namespace

void register_gemm() {
  for (const kernel_table* table : usable_tables()) {
    if (table->name == "scalar") continue;  // the definition, not a competitor
    for (const weight_type type : all_weight_types) {
      const bool wide = block_columns(type) == 256;
      add(*table, type, 30000, wide ? 1024 : 896, 1);
      for (const std::size_t rows : {1, 4, 16, 64, 512}) add(*table, type, 4864, wide ? 1024 : 896, rows);
    }
  }
}

}  // namespace redline::bench
