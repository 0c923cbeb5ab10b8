#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::model {

/// How the two halves of a rotated pair lie in a head: neighbours (llama files) or half a head apart (qwen files).
using rope_layout = kernels::rope_pairs;

enum class norm_kind : std::uint8_t { rms, layer };
/// The input of the down projection: act(gate(x)) * up(x), or, without a gate, act(up(x)). clamped_swiglu: as
/// kernel_table says.
enum class feed_forward_kind : std::uint8_t { gated_silu, gated_gelu, gelu, clamped_swiglu };

/// How queries and keys are normalised before they are rotated: not, each head by weights that all share, each by its
/// own, or all heads of a row together.
enum class head_norm : std::uint8_t { none, shared, own, row };

/// YaRN's way to a longer context: slow rotations are slowed down by `factor`, fast ones are kept, those between get
/// something between.
/// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models" (2023), section 3.
struct yarn_scaling {
  float factor = 1;
  std::uint32_t original_context = 0;  // tokens
  float turns_kept = 32;               // pairs that turn this often within the original context keep their speed
  float turns_slowed = 1;              // pairs that turn no more often get all of the factor
  bool whole_pairs = true;             // the two ends above are rounded outwards to whole pairs
};

/// Multi-head latent attention: a token leaves one vector in the cache, which all heads make their keys and values of,
/// and one rotated part of a key, which they share. It is computed as attention with one KV head: a query is multiplied
/// by the matrix that would have made its head's keys, and what attention gives by the one that would have made its
/// values.
/// Source: DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model" (2024),
/// section 2.1.
struct latent_shape {
  std::uint32_t rank = 0;        // numbers of the vector; a key in the cache has them after its rotated dimensions
  std::uint32_t query_rank = 0;  // queries are made of a vector of so many numbers; 0: of the row itself
  std::uint32_t plain_dim = 0;   // dimensions of a head's own query and key that are not rotated
  std::uint32_t value_dim = 0;   // of a head's own value
};

/// The shape of a decoder, checked once against the file; later code relies on every number here.
struct model_config {
  std::string architecture;  // a name from the table in model_config.cpp
  std::string name;
  std::uint32_t layers = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;  // of queries, keys and values as attention reads them
  std::optional<latent_shape> latent;
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;     // tokens the model was trained for
  std::uint32_t rotary_dim = 0;  // leading dimensions of a head that are rotated
  float norm_epsilon = 0;
  float rope_base = 10000;
  float rope_position_scale = 1;  // linear scaling: position * this
  std::optional<yarn_scaling> yarn;
  float rope_magnitude = 1;  // what is rotated of queries and keys grows by it (YaRN, LongRoPE)
  // LongRoPE: frequencies are divided by one set of factors where sequences have at most so many tokens, and by another
  // one where they may have more; 0: there is none.
  std::uint32_t short_context = 0;
  rope_layout layout = rope_layout::adjacent;
  // Files keep Q, K and V, or gate and up, as one tensor, one above the other.
  bool fused_qkv = false;
  bool fused_gate = false;
  bool qkv_bias = false;
  head_norm head_norms = head_norm::none;
  bool tied_head = false;
  norm_kind norm = norm_kind::rms;
  bool norm_shifts = true;  // layer norms add a vector
  feed_forward_kind activation = feed_forward_kind::gated_silu;
  bool output_bias = false;      // the attention's output and all of the feed-forward part have biases
  bool pre_norms = true;         // what a layer's halves read is normalised
  bool parallel_halves = false;  // both read one norm of the same rows
  bool post_norms = false;       // what they give is normalised before it is added
  float embedding_scale = 1;
  float residual_scale = 1;   // of what a layer's halves add to the residual stream
  float attention_scale = 0;  // of the scores; 0: one over the root of head_dim
  float logit_scale = 1;
  float attention_cap = 0;  // soft caps: of the scores, once scaled, and of the logits; 0: none
  float logit_cap = 0;
  bool attention_sinks = false;  // each head has a learned score that takes its part of the softmax and has no value
  // By layer: how many tokens a row sees, its own the last, in the order of the sequence's table; 0: all. Empty: every
  // layer sees all.
  std::vector<std::uint32_t> windows;
  float window_rope_base = 0;  // of layers with a window, whose positions are not scaled; 0: as in the others
  // A mixture of experts in every layer but the first `dense_layers`, where `experts` is not 0.
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;         // that a row goes to
  std::uint32_t expert_feed_forward = 0;  // hidden width of each
  std::uint32_t shared_feed_forward = 0;  // of the expert that all rows go to; 0: there is none
  bool weighs_shared_expert = true;       // by a sigmoid of its own
  bool normalises_experts = false;        // the weights of a row's experts sum to one
  float expert_scale = 1;                 // of these weights
  std::uint32_t dense_layers = 0;

  [[nodiscard]] bool is_mixture(std::size_t layer) const { return experts != 0 && layer >= dense_layers; }
  /// Layers that are mixtures.
  [[nodiscard]] std::uint32_t mixture_layers() const { return experts == 0 ? 0 : layers - dense_layers; }
  /// Numbers that attention's output product reads of a row.
  [[nodiscard]] std::uint32_t attended_width() const { return heads * (latent ? latent->value_dim : head_dim); }
  [[nodiscard]] std::uint32_t window_of(std::size_t layer) const { return windows.empty() ? 0 : windows[layer]; }
};

/// Whether LongRoPE's factors for long sequences hold, for a model that is opened for sequences of at most context_max
/// tokens; 0: of the model's own context. It is decided once and not by a sequence's length, because cached keys, and
/// the answers of all that share them, must agree.
[[nodiscard]] bool uses_long_factors(const model_config& config, std::uint32_t context_max);

/// Empty without LongRoPE; else which of its factors answers depend on, as a part of a sentence: ", rotated for long
/// sequences".
[[nodiscard]] std::string describe_rotation(const model_config& config, std::uint32_t context_max);

/// Reads and checks the metadata of a known architecture. A failure names the key that is missing, wrong or
/// unsupported.
result<model_config> read_config(const gguf::gguf_file& file);

}  // namespace redline::model
