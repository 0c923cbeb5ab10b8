#pragma once

#include "kernels/weight_type.hpp"

namespace redline::kernels {

/// Weights of one row in the file's layout as floats: the scalar definition that every packed form must equal bit for
/// bit. columns: a multiple of block_columns(type). out: [columns].
void dequantize_row(weight_type type, const std::byte* row, std::size_t columns, float* out);

/// The nearest blocks for a row of floats; values beyond the largest half become infinite scales, NaN stays somewhere
/// in its block. Plain types round to nearest even; q8_0, q4_0 and q5_0 scale by the largest magnitude, q4_1 and q5_1
/// span from the least to the greatest; the k types choose each group's scale (and minimum) by least squares over a few
/// candidates. row: row_bytes(type, columns).
void quantize_row(weight_type type, const float* x, std::size_t columns, std::byte* row);

}  // namespace redline::kernels
