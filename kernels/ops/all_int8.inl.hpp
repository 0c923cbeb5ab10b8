// Products of integers. Included by each targets/*.cpp that has them, after `gemm` (for weights that are not integers)
// and the verbs for bytes and their dot products. The order of the includes matters; blank lines keep the formatter
// from sorting them.

#include "kernels/ops/byte_formats.inl.hpp"

#include "kernels/ops/gemm_int8.inl.hpp"

/// Steps of four columns before the sums become floats, as in a group of 32.
inline constexpr int peak_steps = 8;
// If there are enough registers, the bytes of x that are read serve two sums, because loads are not what is measured.
inline constexpr int peak_panels = dot_rows_max > 4 ? 2 : 1;
inline constexpr int peak_rows = std::min(6, dot_rows_max);

/// Measures like multiply_add_loop: as many products at once as a tile of gemm_int8 has, from memory that stays in the
/// first-level cache.
float dot_loop(std::size_t iterations) {
  alignas(64) std::byte x[256];
  const volatile std::size_t step = 4;  // unknown to the compiler, which could otherwise compute repeated work once
  for (std::size_t i = 0; i < sizeof(x); ++i) x[i] = static_cast<std::byte>(i);
  const std::int32_t minus = 0;
  dot_weights<8> w[peak_panels];
  for (int p = 0; p < peak_panels; ++p) w[p] = ready<8>(load_words(x + p * 64));  // all sums differ
  f32x16 all[peak_rows][peak_panels];
  for (auto& row : all) {
    for (f32x16& sum : row) sum = zero();
  }
  const std::size_t apart = step;
  for (std::size_t n = 0; n < iterations; ++n) {
    dots<8, 128> sums[peak_rows][peak_panels];
#pragma GCC unroll 8
    for (int r = 0; r < peak_rows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < peak_panels; ++p) sums[r][p] = begin_dots<8, 128>(&minus);
    }
    const std::byte* from = x + n * apart % (4 * peak_steps);
    for_constants<peak_steps>([&](auto i) {
#pragma GCC unroll 8
      for (int r = 0; r < peak_rows; ++r) {
#pragma GCC unroll 4
        for (int p = 0; p < peak_panels; ++p) add_dots<i>(sums[r][p], w[p], from + 4 * (i + r));
      }
    });
#pragma GCC unroll 8
    for (int r = 0; r < peak_rows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < peak_panels; ++p) all[r][p] = add(all[r][p], as_floats(sums[r][p]));
    }
  }
  f32x16 total = zero();
  for (const auto& row : all) {
    for (const f32x16 sum : row) total = add(total, sum);
  }
  return sum(total);
}

// Tables are listed on every CPU, so what makes them is compiled for the one that all have.
#pragma GCC push_options
#pragma GCC reset_options
/// A table that computes products with integers.
constexpr kernel_table with_int8(kernel_table t) {
  t.one_chain = false;
  t.product_error = 0x1p-7F;
  t.panels_step = 1;
  t.panels_together = 2;
  t.gemm = gemm_int8;
  t.prepared_bytes = prepared_byte_rows;
  t.prepare_rows = prepare_byte_rows;
  t.multiply_adds_per_iteration = std::size_t{peak_rows} * peak_panels * peak_steps * 64;
  t.multiply_add_loop = dot_loop;
  return t;
}
#pragma GCC pop_options
