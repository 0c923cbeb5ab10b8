#pragma once

#include <cstdint>
#include <string_view>

namespace redline::architecture {

/// What a tensor is for, in the order of synthetic files.
enum class role : std::uint8_t {
  token_embedding,
  layer_embedding,  // of a token for each layer (varied_shape::layer_input), and what is added to it
  layer_projection,
  layer_projection_norm,
  attention_norm,
  attention_norm_shift,
  query_key_value,  // stacked in one tensor
  query,
  key,
  value,
  query_down,  // latent attention (latent_shape)
  query_down_norm,
  query_up,
  latent_down,
  latent_norm,
  latent_keys,
  latent_values,
  attention_output,
  convolution_input,  // recurrent layers that are a convolution: three products, stacked
  delta_input,        // recurrent layers (delta_shape): queries, keys and values, stacked
  delta_gate,
  short_convolution,  // of both kinds of recurrent layers
  delta_decay_input,
  delta_strength,
  delta_strength_and_decay_input,  // for each key head the rows of its strengths, then of its decay inputs
  delta_decay_bias,
  delta_decay,
  delta_norm,
  state_output,  // likewise
  query_bias,
  key_bias,
  value_bias,
  query_norm,
  key_norm,
  attention_output_bias,
  sinks,
  feed_forward_norm,
  feed_forward_norm_shift,
  attention_post_norm,
  feed_forward_post_norm,
  gate,
  up,  // with a fused gate, the gate is stacked above it
  up_bias,
  down,
  down_bias,
  router,
  expert_gates,
  expert_ups,
  expert_downs,
  selection_bias,  // for the choice of experts only
  router_bias,
  expert_gate_biases,
  expert_up_biases,
  expert_down_biases,
  shared_router,
  shared_gate,
  shared_up,
  shared_down,
  dense_post_norm,  // a mixture beside a dense part: norms of the output of each, and of the mixture's input
  expert_norm,
  expert_post_norm,
  router_scale,  // factors of the router's input
  expert_scales,
  layer_input_gate,  // what a layer does with a token's embedding for it
  layer_input_projection,
  layer_input_post_norm,
  layer_scale,
  mtp_embedding_norm,  // an MTP layer: what it reads of a token and of the output before it, and its own output's norm
  mtp_state_norm,
  mtp_input,
  mtp_output_norm,
  output_norm,
  output_norm_shift,
  output,
};

/// A size of a shape (size_of).
enum class dim : std::uint8_t {
  none,
  width,
  vocabulary,
  heads,
  kv_heads,
  head_dim,
  queries,            // dimensions of all heads' own queries
  keys,               // dimensions of all KV heads' keys, the same for values
  query_key_value,    // sum of the three
  queries_and_gates,  // for each head its query and as many gates
  attended,           // the input of attention's output projection
  feed_forward,
  gate_and_up,
  experts,
  expert_feed_forward,
  shared_feed_forward,
  query_rank,
  latent_rank,
  latent_and_rotated,
  plain_dim,
  value_dim,
  delta_channels,
  delta_values,
  delta_value_heads,
  delta_value_heads_twice,
  delta_head_dim,
  taps,
  width_twice,
  width_three_times,
  layer_input,
  layer_inputs,  // of all layers
  one,
};

/// How a Hugging Face hub folder stores what a GGUF file has as one tensor of rows.
enum class hub_form : std::uint8_t {
  same,
  rotated,        // rows are dimensions of heads; pairs may be half a head apart (family::hub_pairs_apart)
  norm,           // may be stored minus one (family::hub_norms_less_one)
  one_row,        // a matrix of one row
  each,           // a tensor for each expert; "*" in the name stands for its number
  stacked,        // part `part` of `parts` equal parts stacked in each expert's matrix
  interleaved,    // row `part` of each `parts` rows of an expert; matrices are transposed, or MXFP4
  latent_keys,    // the first rows of each head, transposed
  latent_values,  // the other rows of each head
  // In folders the value heads that read one key head are adjacent; in files they may be key_heads apart.
  value_heads,         // the last rows are value heads
  value_head_columns,  // the columns are
  convolution,         // the last rows may be, and there is a dimension of 1 before the taps
  decay,               // the rows are, and the numbers are logarithms of the negated ones
  key_groups,          // a part of a matrix with all rows of a key head together (delta_shape::packed_row)
};

/// When a layer has a tensor.
enum class presence : std::uint8_t {
  always,
  untied,            // the output head is not the embedding
  norm_shifts,       // layer norms add a vector
  dense,             // the layer is not a mixture
  mixture,           // the layer is a mixture of experts
  shared_expert,     // a mixture with an expert that all rows go to
  low_rank_queries,  // queries are computed from a vector of query_rank numbers
  direct_queries,
  qkv_biases,
  own_head_norms,
  selection_bias,  // a mixture whose router has such a bias
  attention,       // the layer is not recurrent
  recurrent,       // the layer is recurrent
  own_keys,        // the layer has keys and values of its own
  own_values,      // likewise, with a matrix for the values
  layer_input,     // tokens have an embedding for each layer
};

/// A tensor that layers of a family have, or that the model has once. Matrices are [rows, columns], and with a count
/// there are that many of them; vectors have no columns.
struct tensor_row {
  role is;
  std::string_view gguf;  // below "blk.<layer>."
  std::string_view hub;   // below "model.layers.<layer>."
  dim rows;
  dim columns = dim::none;
  dim count = dim::none;
  hub_form form = hub_form::same;
  presence when = presence::always;
  std::uint8_t part = 0;
  std::uint8_t parts = 1;
};

}  // namespace redline::architecture
