#pragma once

#include <vector>

#include "kernels/packed_weights.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::model {

/// [width] each; an RMS norm has no shift, a layer norm without a shift has zeros. Empty means no normalization.
struct norm_weights {
  std::vector<float> scale;
  std::vector<float> shift;
};

/// The feed-forward part of a layer, or one expert of a mixture.
struct feed_forward_weights {
  kernels::packed_weights gate, up, down;  // gate: empty if the activation has none
  std::vector<float> gate_bias, up_bias, down_bias;
};

/// For a product that takes nullptr if there is no bias.
inline const float* or_null(const std::vector<float>& bias) { return bias.empty() ? nullptr : bias.data(); }

/// A mixture of experts: the router's rows are the experts.
struct mixture_weights {
  kernels::packed_weights router;             // [experts, width]
  std::vector<float> router_bias;             // [experts], or empty
  std::vector<float> selection_bias;          // [experts], or empty
  std::vector<float> expert_scales;           // [experts]: factors of their outputs, or empty
  std::vector<feed_forward_weights> experts;  // empty if the layer has no mixture
  kernels::packed_weights shared_router;      // [1, width]; empty without an expert that all rows go to
  feed_forward_weights shared;
};

/// The weights of latent attention in addition to queries and the output projection (latent_shape).
struct latent_weights {
  kernels::packed_weights query_down;  // [query_rank, width]; empty if queries are computed from the row itself
  std::vector<float> query_norm;       // [query_rank]
  kernels::packed_weights down;        // [rank + rotary_dim, width]
  std::vector<float> norm;             // [rank]
  std::vector<kernels::packed_weights> of_query;  // by head: [rank, plain_dim]
  std::vector<kernels::packed_weights> of_value;  // by head: [value_dim, rank]
};

/// A recurrent layer (delta_shape).
struct delta_weights {
  kernels::packed_weights input, gate;            // [channels, width], [values, width]
  kernels::packed_weights decay_input, strength;  // [value_heads, width]
  std::vector<float> decay_bias, decay;           // [value_heads]; decay is negative
  std::vector<float> norm;                        // [head_dim]
};

/// What a layer does with a token's embedding for it (varied_shape::layer_input).
struct layer_input_weights {
  kernels::packed_weights gate;        // [layer_input, width]; empty if there is none
  kernels::packed_weights projection;  // [width, layer_input]
  norm_weights post_norm;
};

/// What an MTP layer has beside what a layer has.
struct mtp_weights {
  std::vector<float> embedding_norm, state_norm;  // [width] each
  kernels::packed_weights input;                  // [width, 2 * width]: of the embedding, then of the state
  norm_weights output_norm;
  kernels::packed_weights head;  // the first rows of the model's
};

/// One decoder layer. Matrices are [outputs, inputs]; an empty bias means none.
struct layer_weights {
  norm_weights attention_norm;
  kernels::packed_weights query, key, value, output;  // key, value: empty with latents, or if the layer has none
  kernels::packed_weights query_gate;                 // [heads * head_dim, width], if the family gates attention
  latent_weights latents;
  // If the layer is recurrent; `output` is its output projection, too.
  delta_weights delta;
  kernels::packed_weights convolution_input;  // [3 * width, width], if the layer is a convolution
  std::vector<float> short_convolution;       // [taps, channels] of either kind
  std::vector<float> query_bias, key_bias, value_bias, output_bias;
  std::vector<float> query_norm, key_norm;  // [head_dim], or for all heads of a row; empty for no normalization
  std::vector<float> head_shift;            // [head_dim] zeros, if heads have layer norms
  std::vector<float> sinks;                 // [heads], or empty
  norm_weights feed_forward_norm;
  norm_weights attention_post_norm, feed_forward_post_norm;  // for the output of each half
  feed_forward_weights feed_forward;                         // may be empty if the layer has a mixture
  mixture_weights mixture;
  // If the layer has both: norms of the output of each, and of the mixture's input. The router reads an input of its
  // own, the layer's normalized by router_norm.
  norm_weights dense_post_norm, expert_norm, expert_post_norm, router_norm;
  layer_input_weights input;
  float scale = 1;  // of the layer's output

  /// Whether both halves read the output of the first norm.
  [[nodiscard]] bool reads_one_norm() const { return !attention_norm.scale.empty() && feed_forward_norm.scale.empty(); }
};

class weights {
 public:
  model_shape config;
  const kernels::kernel_table* table = nullptr;  // the matrices have its layout
  kernels::memory_block matrices;                // one block for all, which fits huge pages, unlike many small ones
  kernels::packed_weights embedding;             // [vocabulary, width]
  kernels::packed_weights head;                  // [vocabulary, width]; empty when tied
  norm_weights output_norm;
  // Tokens' embeddings for each layer, and what is added to them; empty if there are none (varied_shape).
  kernels::packed_weights layer_embedding;   // [vocabulary, layers * layer_input]
  kernels::packed_weights layer_projection;  // [layers * layer_input, width]
  std::vector<float> layer_projection_norm;  // [layer_input]
  std::vector<float> rope_factors;           // divisors of the frequencies; may be empty
  std::vector<layer_weights> layers;         // with an MTP layer as the last one
  mtp_weights mtp;

  [[nodiscard]] const kernels::packed_weights& output_head() const { return config.tied_head ? embedding : head; }
};

}  // namespace redline::model
