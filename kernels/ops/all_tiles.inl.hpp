// The operations with tiles, and a table of them. Included by the targets that have tiles, after the verbs for vectors
// and tiles. The order of the includes matters; blank lines keep the formatter from sorting them.

#include "kernels/ops/chunks.inl.hpp"

#include "kernels/ops/lane_functions.inl.hpp"

#include "kernels/ops/formats.inl.hpp"

#include "kernels/ops/gemm_tiles.inl.hpp"

/// Used for weights that are not integers in tables with integer products.
void gemm(const gemm_args& a) { avx512_table().gemm(a); }

#include "kernels/ops/all_int8.inl.hpp"

#include "kernels/ops/gemm_int8_tiles.inl.hpp"

#include "kernels/ops/rope.inl.hpp"

#include "kernels/ops/kv_access.inl.hpp"

#include "kernels/ops/attention_kv_splits.inl.hpp"

#include "kernels/ops/attention_tiles.inl.hpp"

// Tables are listed on every CPU, so what makes them is compiled for the one that all have.
#pragma GCC push_options
#pragma GCC reset_options
/// Products with tiles, and attention unless keys and values are already integers; the rest as on AVX-512.
kernel_table tile_table(std::string_view name) {
  kernel_table t = best_avx512_table();
  t.name = name;
  t.one_chain = false;
  t.product_error = 0x1p-7F;
  t.unrounded = &best_avx512_table();
  t.panels_step = tile_panels_max;
  t.attention_vectors = 96;
  t.rows_beside_reading = 64;
  t.gemm = gemm_by_tiles;
  t.prepared_bytes = prepared_tile_bytes;
  t.prepare_rows = prepare_tile_rows;
  t.attention = attention_by_tiles;
  t.join_attention = join_attention_by_tiles;
  t.multiply_adds_per_iteration = 4 * 16 * 16 * tile_columns;
  t.multiply_add_loop = tile_multiply_loop;
  return t;
}

/// Integer products with tiles, the rest as in `base`.
kernel_table int8_tile_table(std::string_view name, const kernel_table& base) {
  kernel_table t = with_int8_tiles(base);
  t.name = name;
  return t;
}
#pragma GCC pop_options
