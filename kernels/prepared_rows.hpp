#pragma once

#include <algorithm>

#include "kernels/kernel_table.hpp"
#include "kernels/machine/memory.hpp"

namespace redline::kernels {

/// Rows of x in the form that a table's gemm reads: for callers with a single product.
class prepared_rows {
 public:
  /// x: [rows, columns], rows x_stride floats apart. Throws std::bad_alloc.
  prepared_rows(const kernel_table& table, const float* x, std::size_t x_stride, std::size_t rows, std::size_t columns)
      : memory_(table.prepared_bytes(rows, columns)) {
    if (memory_.size() > 0) table.prepare_rows(x, x_stride, 0, rows, columns, memory_.data());
  }
  /// nullptr if gemm reads floats.
  [[nodiscard]] const std::byte* data() const { return memory_.size() > 0 ? memory_.data() : nullptr; }

 private:
  memory_block memory_;
};

}  // namespace redline::kernels
