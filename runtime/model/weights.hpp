#pragma once

#include <vector>

#include "kernels/packed_weights.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::model {

/// One decoder layer. Matrices are [outputs, inputs]; empty biases mean none.
struct layer_weights {
  std::vector<float> attention_norm;
  kernels::packed_weights query, key, value, output;
  std::vector<float> query_bias, key_bias, value_bias;
  std::vector<float> query_norm, key_norm;  // [head_dim]; empty: heads are not normalised
  std::vector<float> feed_forward_norm;
  kernels::packed_weights gate, up, down;
};

class weights {
 public:
  model_config config;
  const kernels::kernel_table* table = nullptr;  // whose layout the matrices have
  kernels::packed_weights embedding;             // [vocabulary, width]
  kernels::packed_weights head;                  // likewise; empty when tied
  std::vector<float> output_norm;
  std::vector<float> rope_factors;  // divisors of the frequencies; empty for none
  std::vector<layer_weights> layers;

  [[nodiscard]] const kernels::packed_weights& output_head() const { return config.tied_head ? embedding : head; }
};

}  // namespace redline::model
