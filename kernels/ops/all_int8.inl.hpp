// Products of integers. Included by each targets/*.cpp that has them, after `gemm` (for weights that are no integers)
// and the verbs on bytes and their dots. The order of the includes matters; blank lines keep the formatter from sorting
// them.

#include "kernels/ops/byte_formats.inl.hpp"

#include "kernels/ops/gemm_int8.inl.hpp"

/// A table whose products are those of integers.
constexpr kernel_table with_int8(kernel_table t) {
  t.one_chain = false;
  t.product_error = 0x1p-7F;
  t.panels_step = dot_panels;
  t.gemm = gemm_int8;
  t.prepared_bytes = prepared_byte_rows;
  t.prepare_rows = prepare_byte_rows;
  return t;
}
