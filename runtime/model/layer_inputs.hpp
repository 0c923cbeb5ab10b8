#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/model/batch.hpp"
#include "runtime/model/float_buffer.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

/// What layers add for a token beside its own embedding (varied_shape::layer_input): each layer has an embedding of the
/// token, to which a projection of the token's own one is added.
/// Source: Gemma 3n and 4, as released with Hugging Face transformers ("per-layer embeddings").
class layer_inputs {
 public:
  /// Allocates buffers for rows_max rows of a pass. Throws std::bad_alloc.
  layer_inputs(const model_shape& config, row_products& products, std::size_t rows_max);

  /// Bytes of the buffers for one row of a pass.
  [[nodiscard]] static std::uint64_t row_bytes(const model_shape& config);

  /// Begins a pass. x: [rows, width], the embeddings of the tokens.
  void begin(const weights& w, std::span<const token> tokens, const float* x);
  /// Adds a layer's part to x [rows, width]. wanted: if not all rows of the pass are left, the indexes of those.
  void add(std::size_t layer, const layer_weights& l, std::span<const std::uint32_t> wanted, std::size_t rows,
           float* x);

 private:
  const model_shape& config_;
  row_products& products_;
  std::size_t size_;                  // of one layer's input
  float_buffer embeddings_, inputs_;  // [rows, layers * size]
  float_buffer gate_;                 // [rows, size]
  float_buffer added_;                // [rows, width]
};

}  // namespace redline::model
