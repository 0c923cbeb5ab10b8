#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "kernels/packed_weights.hpp"
#include "kernels/worker_team.hpp"
#include "runtime/model/float_buffer.hpp"

namespace redline::model {

/// Rows per work item of a row-wise loop.
inline constexpr std::size_t rows_per_item = 8;

/// Rows of activations that are multiplied by the same matrices: [count, columns].
struct input_rows {
  const float* x = nullptr;
  std::size_t count = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;               // floats from one row to the next; 0 means `columns`
  const std::byte* prepared = nullptr;  // from row_products::prepare; nullptr if the table reads floats

  [[nodiscard]] std::size_t row_stride() const { return stride == 0 ? columns : stride; }
};

/// Products of rows of activations with packed matrices, shared by a team's threads. The bits of a row's products
/// depend only on the row and the matrix.
class row_products {
 public:
  row_products(const kernels::kernel_table& table, kernels::worker_team& team) : table_(table), team_(team) {}

  /// w is [outputs, columns]; y is [rows, outputs]; bias: [outputs] or nullptr.
  struct product {
    const kernels::packed_weights& w;
    float* y;
    const float* bias = nullptr;
  };
  /// y = x w^T + bias for every product, in one loop. All have the same number of columns.
  void multiply(const float* x, std::size_t rows, std::initializer_list<product> products);

  /// Finds the best of each row's outputs, without writing the outputs. best: [rows]
  void find_best(const float* x, std::size_t rows, const kernels::packed_weights& w, std::span<kernels::row_best> best);

  /// Converts each group to the form that the table's gemm reads, once for all threads. Valid until the next call.
  void prepare(std::span<input_rows> groups);
  /// Whether products with the matrix read prepared rows.
  [[nodiscard]] bool takes_prepared(const kernels::packed_weights& matrix) const;
  /// Computes panels [panel_begin, panel_end). y_stride: floats from one row of y to the next; 0 means the number of
  /// outputs.
  void multiply(const kernels::packed_weights& w, const input_rows& rows, std::size_t panel_begin,
                std::size_t panel_end, float* y, const float* bias, std::size_t y_stride = 0) const;

  /// Calls body(which, begin, end, worker) for segments of several ranges of panels, shared by the threads.
  void for_panels(std::span<const std::size_t> panels_of_each,
                  const std::function<void(std::size_t, std::size_t, std::size_t, std::uint32_t)>& body);

  [[nodiscard]] const kernels::kernel_table& table() const { return table_; }
  [[nodiscard]] kernels::worker_team& team() const { return team_; }

  /// Calls body(row) for rows [0, count), shared by the threads.
  template<class Body>
  void for_rows(std::size_t count, Body body) {
    team_.parallel_for((count + rows_per_item - 1) / rows_per_item, [&](std::size_t item, std::uint32_t) {
      const std::size_t end = std::min(count, (item + 1) * rows_per_item);
      for (std::size_t row = item * rows_per_item; row < end; ++row) body(row);
    });
  }

 private:
  const kernels::kernel_table& table_;
  kernels::worker_team& team_;
  float_buffer prepared_;
  struct stretch {
    std::size_t group = 0, begin = 0, end = 0;
  };
  std::vector<stretch> to_prepare_;      // rows
  std::vector<std::size_t> units_end_;   // by range of for_panels: the cumulative end of its panels, in steps
  std::vector<std::size_t> panels_;      // panels of the current products
  std::vector<kernels::row_best> best_;  // [thread][row]
  float_buffer outputs_;                 // [thread][row][some panels]
};

}  // namespace redline::model
