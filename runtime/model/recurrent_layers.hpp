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

/// Layers that keep a state instead of all tokens (model_shape::has_states), and the states of all sequences.
///
/// A slot has, by layer, the matrices of the value heads (delta_shape) and the last rows of the convolution's input,
/// both as they were before the rows that a pass did not keep; and a record of each of those rows: what it changes.
/// Slots for copies of states have no records. The next pass applies the records of the accepted ones first. So a draft
/// is never in the state, nothing is copied to take it back, and each pass reads and writes the state once. The bits of
/// a row depend only on the sequence's tokens.
class recurrent_layers {
 public:
  /// Allocates buffers for rows_max rows of a pass, `slots` states with records_max records each, and `copies`. Throws
  /// std::bad_alloc.
  recurrent_layers(const model_shape& config, row_products& products, std::size_t rows_max, std::uint32_t slots,
                   std::uint32_t copies, std::uint32_t records_max);

  /// Bytes of a slot.
  [[nodiscard]] static std::uint64_t slot_bytes(const model_shape& config, std::uint32_t records_max);
  /// Bytes of the buffers for one row of a pass.
  [[nodiscard]] static std::uint64_t row_bytes(const model_shape& config);

  /// Copies states between slots, in order, without records.
  void copy(std::span<const kv::state_copy> copies);
  /// Begins a pass. The runs that are not empty have consecutive rows.
  void begin(std::span<const run> batch);
  /// The numbers per row of what `compute` returns.
  [[nodiscard]] std::size_t output_width() const { return sizes_.outputs; }
  /// The input of the output projection, [rows, output_width], of all rows of the pass. Valid until the next call.
  /// place: the number of earlier recurrent layers; x: [rows, width].
  float* compute(std::size_t place, const layer_weights& layer, const float* x, std::size_t rows);

 private:
  struct part {  // a run
    std::size_t first_row = 0;
    std::uint32_t row_count = 0;
    kv::state_use state;
  };
  /// A layer's part of a slot.
  struct view {
    float* matrices;  // [value_heads][head_dim / 32][head_dim][32]
    float* history;   // [taps - 1][channels]
    float* inputs;    // the records, [records_max] each: [channels]
    float* keys;      // [keys]
    float* changes;   // [values]
    float* decays;    // [value_heads]
  };
  [[nodiscard]] view view_of(std::uint32_t slot, std::size_t place) const;
  [[nodiscard]] row_history history_of(const view& v) const {
    return {v.history, v.inputs, sizes_.taps - 1, sizes_.channels};
  }
  /// Numbers per row and per state.
  struct sizes {
    std::size_t taps, channels, outputs;
    std::size_t keys = 0, values = 0, value_heads = 0, matrices = 0;  // with a delta_shape
    explicit sizes(const model_shape& config);
  };
  [[nodiscard]] static std::size_t layer_floats(const sizes& s, std::uint32_t records_max);
  float* compute_delta(std::size_t place, const layer_weights& layer, const float* x, std::size_t rows);
  float* compute_convolution(std::size_t place, const layer_weights& layer, const float* x, std::size_t rows);
  void convolve(const std::vector<float>& weights, const part& p, std::size_t place, std::size_t row, bool has_silu);
  void finish_row(const layer_weights& layer, std::size_t row);
  void scan(const part& p, std::size_t place, std::size_t head, std::uint32_t worker);
  void remember(const part& p, std::size_t place);

  const model_shape& config_;
  const sizes sizes_;
  const architecture::delta_shape shape_;  // zeros if the layers are convolutions
  row_products& products_;
  std::uint32_t slots_;
  std::uint32_t records_max_;
  std::size_t layers_;
  kernels::memory_block memory_;
  std::vector<part> parts_;
  std::vector<std::uint32_t> part_of_row_;
  float_buffer inputs_;                         // [rows, channels]: the convolution's input
  float_buffer mixed_;                          // [rows, channels]: its output; then queries, keys and values
  float_buffer projected_;                      // [rows, 3 * width], if the layers are convolutions
  float_buffer gates_;                          // [rows, values]
  float_buffer decays_;                         // [rows, value_heads]
  float_buffer strengths_;                      // [rows, value_heads]
  float_buffer changes_;                        // [rows, values]
  float_buffer outputs_;                        // [rows, values]
  std::vector<float> query_scale_, key_scale_;  // [head_dim]: see finish_row
  struct scratch {
    std::vector<kernels::delta_update> updates;
    std::vector<kernels::delta_row> rows;
    std::vector<float> columns;
  };
  std::vector<scratch> scratch_;  // by worker
};

}  // namespace redline::model
