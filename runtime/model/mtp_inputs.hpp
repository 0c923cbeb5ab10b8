#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/machine/memory.hpp"
#include "runtime/model/batch.hpp"
#include "runtime/model/float_buffer.hpp"
#include "runtime/model/row_history.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

/// What an MTP layer reads: of each row its token, and the output of the row before it. The last outputs of a sequence
/// are a part of its state, in slots like those of recurrent_layers.
class mtp_inputs {
 public:
  /// Allocates as recurrent_layers does. Throws std::bad_alloc.
  mtp_inputs(const model_shape& config, row_products& products, std::size_t rows_max, std::uint32_t slots,
             std::uint32_t copies, std::uint32_t records_max);

  /// Bytes of a slot.
  [[nodiscard]] static std::uint64_t slot_bytes(const model_shape& config, std::uint32_t records_max);
  /// Bytes of the buffers for one row of a pass.
  [[nodiscard]] static std::uint64_t row_bytes(const model_shape& config);

  void copy(std::span<const kv::state_copy> copies);
  void begin(std::span<const run> batch);
  /// Keeps the normalized output of all rows of the pass, [rows, width], which `outputs` then returns, and writes the
  /// input of each to x, [rows, width].
  void read(const weights& w, std::span<const token> tokens, const float* normed, float* x);
  [[nodiscard]] float* outputs() { return outputs_.data(); }
  /// The same for tokens after other outputs, without states: previous is [tokens, width].
  void combine(const weights& w, std::span<const token> tokens, const float* previous, float* x);

 private:
  struct part {  // a run
    std::size_t first_row = 0;
    std::size_t row_count = 0;
    kv::state_use state;
  };
  [[nodiscard]] row_history history_of(std::uint32_t slot) const;
  void write_pair(const weights& w, token t, const float* previous, std::size_t row);

  std::size_t width_;
  float epsilon_;
  row_products& products_;
  std::uint32_t slots_;
  std::uint32_t records_max_;
  kernels::memory_block memory_;
  std::vector<part> parts_;
  float_buffer outputs_;  // [rows, width]
  float_buffer pairs_;    // [rows, 2 * width]
};

}  // namespace redline::model
