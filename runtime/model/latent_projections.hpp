#pragma once

#include <cstddef>
#include <vector>

#include "runtime/architecture/shape_keys.hpp"
#include "runtime/model/float_buffer.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

/// The projections around attention with one KV head, if heads compute their keys and values from a token's vector
/// (latent_shape). The bits of a row depend only on the row.
class latent_projections {
 public:
  /// Allocates buffers for rows_max rows. Throws std::bad_alloc.
  latent_projections(const model_shape& config, row_products& products, std::size_t rows_max);

  /// Computes the inputs of attention, before rotation, from x [rows, width]. query: [rows, heads, head_dim], for each
  /// head the part that is rotated, then the product of the rest with the head's of_query. key: [rows, head_dim], the
  /// part that is rotated, then the vector. value: [rows, head_dim], the vector, then zeros.
  void read(const layer_weights& layer, const float* x, std::size_t rows, float* query, float* key, float* value);

  /// Computes the input of the output projection, [rows, heads * value_dim], from the attention output [rows, heads,
  /// head_dim]. Valid until the next call.
  const float* write(const layer_weights& layer, const float* attended, std::size_t rows);

 private:
  void read_row(const layer_weights& layer, std::size_t row, float* query, float* key, float* value);
  /// y = x w^T for each head's matrix. x, y: of the first head; rows are x_stride and y_stride floats apart, heads
  /// x_step and y_step.
  struct rows_of_heads {
    const float* x;
    std::size_t x_stride, x_step;
    float* y;
    std::size_t y_stride, y_step;
  };
  void multiply(const std::vector<kernels::packed_weights>& matrices, std::size_t rows, const rows_of_heads& of);

  const model_shape& config_;
  const architecture::latent_shape& shape_;
  row_products& products_;
  float_buffer low_;                 // [rows, query_rank]
  float_buffer own_;                 // [rows, heads, plain_dim + rotary_dim]: the heads' own queries
  float_buffer down_;                // [rows, rank + rotary_dim]
  float_buffer values_;              // [rows, heads, value_dim]
  std::vector<input_rows> inputs_;   // by head
  std::vector<std::size_t> panels_;  // by head
};

}  // namespace redline::model
