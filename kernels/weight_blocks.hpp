#pragma once

#include <cstddef>

#include "kernels/weight_type.hpp"

namespace redline::kernels {

/// The reference for every weight_type in the file's layout, one row at a time, with the same bits on every machine.
/// columns: a multiple of block_columns(type). `row` needs no alignment.

/// Writes the floats that weight_type.hpp defines. Any bytes are a valid row: scales that are NaN or infinite give
/// weights that are NaN or infinite.
void dequantize_row(weight_type type, const std::byte* row, std::size_t columns, float* out);

/// Writes row_bytes(type, columns) bytes, each weight near the given one. type: must be is_written. f32, f16, bf16:
/// rounded to nearest, ties to even; NaN stays NaN, a number beyond the type's range becomes infinite. Block types: NaN
/// counts as 0, and numbers are first clamped to [-65504, 65504], so that every scale is finite. q8_0, q4_0 and q5_0
/// scale by the number of the largest magnitude, q4_1 and q5_1 by the least and the largest, the others search for the
/// least sum of squared errors. Rows that it wrote as q8_0, q4_0 or q5_0 are reproduced exactly, unless a scale is
/// below the normal half floats (2^-14).
void quantize_row(weight_type type, const float* x, std::size_t columns, std::byte* row);

}  // namespace redline::kernels
