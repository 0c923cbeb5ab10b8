#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/model/expert_choice.hpp"
#include "runtime/model/float_buffer.hpp"
#include "runtime/model/row_products.hpp"
#include "runtime/model/weights.hpp"

namespace redline::model {

/// How much a mixture of experts was used so far, over all layers and passes.
struct expert_use {
  std::uint64_t layers = 0;   // layers computed
  std::uint64_t rows = 0;     // rows computed in these layers
  std::uint64_t experts = 0;  // distinct experts of a layer's rows, whose weights were read
};

/// The feed-forward part of a layer, for the rows of one pass: a gated or plain pair of products, or a mixture of
/// experts. Rows are grouped by expert, so that each expert's weights are read once for all users' rows. A row's sum
/// over its experts follows the order of their shares, so its bits do not depend on the other rows of the pass.
class feed_forward {
 public:
  /// Allocates buffers for rows_max rows. Throws std::bad_alloc.
  feed_forward(const model_shape& config, row_products& products, std::size_t rows_max);

  /// Bytes of the buffers for one row of a pass.
  [[nodiscard]] static std::uint64_t row_bytes(const model_shape& config);

  /// The layer's mixture, or its only part: out = down(act(gate(x)) * up(x)). x, out: [rows, width]. to_router: what
  /// the router reads; nullptr means x.
  void compute(const layer_weights& layer, const float* x, std::size_t rows, float* out,
               const float* to_router = nullptr);
  /// The dense part of a layer, which may have a mixture, too.
  void compute_dense(const layer_weights& layer, const float* x, std::size_t rows, float* out);
  [[nodiscard]] const expert_use& use() const { return use_; }

 private:
  /// Rows that are multiplied by the same matrices.
  struct group {
    const feed_forward_weights* w = nullptr;
    float* gate = nullptr;  // [rows, hidden]; after the activation the input of `down`
    float* up = nullptr;    // [rows, hidden]
    float* out = nullptr;   // [rows, width]
  };
  void begin();
  void choose(const mixture_weights& mixture, const float* x, std::size_t rows);
  void gather(const mixture_weights& mixture, const float* x, std::size_t rows);
  void add_group(const feed_forward_weights& w, const float* x, std::size_t rows, float* out);
  void compute_groups();
  void activate(float* gate, const float* up, std::size_t count) const;
  void sum(const mixture_weights& mixture, std::size_t rows, float* out);

  const model_shape& config_;
  row_products& products_;
  float_buffer gate_, up_;                  // all groups consecutively
  float_buffer router_logits_;              // [rows, experts]
  float_buffer shared_logits_;              // [rows]: for the expert that all rows share
  float_buffer gathered_, of_experts_;      // [pair of a row and an expert, width], ordered by expert
  float_buffer of_shared_;                  // [rows, width]
  std::vector<expert_share> shares_;        // [rows, experts_used]
  std::vector<std::uint32_t> pairs_;        // [rows, experts_used]: the pair's row in gathered_
  std::vector<std::uint32_t> pairs_begin_;  // by expert
  std::vector<group> groups_;
  std::vector<input_rows> inputs_;  // by group
  std::vector<std::size_t> panels_;
  std::size_t hidden_used_ = 0;  // floats of gate_ in use
  expert_use use_;
};

}  // namespace redline::model
