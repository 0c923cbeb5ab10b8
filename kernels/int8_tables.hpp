#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// The table of the same target whose products with weights in blocks are those of integers (README.md); nullptr where
/// there is none. All of them give the same bits. It takes weights that the target's own table packed, and the reverse.
/// Its gemm has to be given `prepared` where prepared_bytes is not 0, and reads x too where weights are no blocks.
[[nodiscard]] const kernel_table* int8_table_of(const kernel_table& target);
/// Whether it is one of those.
[[nodiscard]] bool multiplies_integers(const kernel_table& table);

}  // namespace redline::kernels
