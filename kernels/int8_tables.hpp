#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// The table of the same target that computes products with weights in blocks as integers (README.md); nullptr if there
/// is none. All of them give the same bits. Each accepts weights packed by the target's own table, and vice versa. If
/// prepared_bytes is not 0, its gemm requires `prepared`; it also reads x if weights are not in blocks.
[[nodiscard]] const kernel_table* int8_table_of(const kernel_table& target);
/// Whether the table is one of those.
[[nodiscard]] bool multiplies_integers(const kernel_table& table);

}  // namespace redline::kernels
