#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/architecture/family.hpp"
#include "runtime/base/result.hpp"

namespace redline::architecture {

/// YaRN extends the context: slow rotations are slowed down by `factor`, fast ones keep their speed, and those in
/// between are interpolated.
/// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models" (2023), section 3.
struct yarn_scaling {
  float factor = 1;
  std::uint32_t original_context = 0;  // tokens
  float turns_kept = 32;   // pairs that turn at least this often within the original context keep their speed
  float turns_slowed = 1;  // pairs that turn at most this often get the full factor
};

/// Multi-head latent attention: a token caches one vector, from which all heads compute their keys and values, and one
/// rotated part of a key, which they share. It is computed as attention with one KV head: a query is multiplied by the
/// matrix that would have made its head's keys, and the attention output by the one that would have made its values.
/// Source: DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model" (2024),
/// section 2.1.
struct latent_shape {
  std::uint32_t rank = 0;        // size of the vector; a cached key has it after its rotated dimensions
  std::uint32_t query_rank = 0;  // size of the vector from which queries are computed; 0 if that is the row itself
  std::uint32_t plain_dim = 0;   // unrotated dimensions of a head's own query and key
  std::uint32_t value_dim = 0;   // dimensions of a head's own value
};

/// Gated DeltaNet: a layer that keeps, instead of all tokens, a matrix for each value head and the last rows of a short
/// convolution. A value head reads one key head.
/// Source: Yang, Kautz, Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule" (2024).
struct delta_shape {
  std::uint32_t taps = 0;  // rows that the convolution sees, including its own
  std::uint32_t key_heads = 0;
  std::uint32_t value_heads = 0;  // a multiple of key_heads
  std::uint32_t head_dim = 0;     // of queries, keys and values; a multiple of 32
  bool groups_values = false;     // the value heads of a key head are adjacent, instead of key_heads apart

  [[nodiscard]] std::uint32_t keys() const { return key_heads * head_dim; }
  [[nodiscard]] std::uint32_t values() const { return value_heads * head_dim; }
  /// Channels of the convolution: queries, keys, values.
  [[nodiscard]] std::uint32_t channels() const { return 2 * keys() + values(); }
  [[nodiscard]] std::uint32_t values_per_key() const { return value_heads / key_heads; }
  [[nodiscard]] std::uint32_t key_head_of(std::uint32_t value_head) const {
    return groups_values ? value_head / values_per_key() : value_head % key_heads;
  }
  /// The place of a value head among all if those of a key head are adjacent.
  [[nodiscard]] std::uint32_t grouped_place(std::uint32_t value_head) const {
    return groups_values ? value_head : value_head % key_heads * values_per_key() + value_head / key_heads;
  }
  /// Qwen3-Next: the row of a matrix that has, for each key head, its query, key, values and their gates. `row` counts
  /// the channels, then the gates.
  [[nodiscard]] std::uint64_t packed_row(std::uint64_t row) const;
};

/// Gemma 4: layers with a window have heads of another size than those that see all tokens, the last layers read keys
/// and values of earlier ones, and a token has an embedding for each layer beside its own.
struct varied_shape {
  std::uint32_t window_head_dim = 0;
  std::uint32_t window_kv_heads = 0;
  std::uint32_t window_rotary_dim = 0;
  std::uint32_t sharing_layers = 0;        // the last ones, which read keys and values of the last of their kind before
  std::uint32_t sharing_feed_forward = 0;  // the hidden width of these layers
  std::uint32_t layer_input = 0;           // size of a token's embedding for each layer; 0 if there is none
  bool keys_are_values = false;            // layers without a window have no matrix for values: the keys' does both
};

/// What a layer sees of the tokens before: all of them, a window of the last ones, or a state.
enum class layer_kind : std::uint8_t { full, window, recurrent };

/// The numbers of one decoder; its family's row says how it computes. read_shape fills in all of them from a GGUF file,
/// and later code relies on every one. A shape made for writing needs only what put_shape writes; there 0 means the
/// family's default and leaves the key out.
struct model_shape {
  const family* kind = nullptr;  // null only if no model was read
  std::uint32_t layers = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;  // size of queries, keys and values as attention reads them
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // tokens that the model was trained for
  float rope_base = 0;
  float norm_epsilon = 0;
  bool tied_head = true;

  // If `experts` is not 0, every layer but the first `dense_layers` has a mixture of experts.
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;         // experts per row
  std::uint32_t expert_feed_forward = 0;  // hidden width of each expert
  std::uint32_t shared_feed_forward = 0;  // hidden width of the expert that all rows go to; 0 if there is none

  float embedding_scale = 0;
  float residual_scale = 0;   // for what a layer's halves add to the residual stream
  float attention_scale = 0;  // for the scores; 0 means one over the root of head_dim
  float logit_scale = 0;      // as stored in files: Granite divides logits by it, Command-R multiplies them by it
  /// A query at position p is multiplied by 1 + this * ln(1 + floor(p / n)); n is YaRN's original context in tokens.
  float temperature_scale = 0;
  float attention_cap = 0;  // soft caps of the scaled scores and of the logits; 0 in a read shape means none
  float logit_cap = 0;

  std::uint32_t window = 0;  // tokens that a row of a layer with a window sees, including its own; 0 means no window
  std::uint32_t window_period = 0;  // for writing, if it differs from the family's
  float window_rope_base = 0;  // for layers with a window, whose positions are not scaled; 0 means the others' base
  std::vector<layer_kind> layer_kinds;  // by layer, in a read shape; empty if every layer sees all tokens

  std::uint32_t rotary_dim = 0;   // leading dimensions of a head that are rotated; 0 means all
  float rope_position_scale = 1;  // linear scaling: position * this
  std::optional<yarn_scaling> yarn;
  float yarn_log_multiplier = 0;    // for writing: m of yarn_growth
  float rope_magnitude = 0;         // factor of the rotated part of queries and keys (YaRN, LongRoPE)
  std::uint32_t short_context = 0;  // LongRoPE: the longest context of its short factors, in tokens; 0 if there is none

  std::optional<latent_shape> latent;
  // Recurrent layers have a delta_shape or, in LFM2, are a short convolution: a row's first and third product are
  // multiplied, the last `convolution_taps` of these are mixed, and the result is multiplied by the second product.
  std::optional<delta_shape> delta;
  std::uint32_t convolution_taps = 0;  // 0 if there is no such layer
  std::optional<varied_shape> varied;  // if there is one, other sizes are those of layers that see all tokens
  std::uint32_t dense_layers = 0;      // layers before the first mixture
  bool normalises_experts = false;
  float expert_scale = 0;  // for the weights of a row's experts
  gating gates = gating::softmax;
  // Experts form this many equal, consecutive groups, and a row's experts are chosen from its best groups.
  std::uint32_t expert_groups = 1;
  std::uint32_t expert_groups_used = 1;
  bool selection_bias = false;  // a bias is added to the sigmoids for the choice of experts, not for their weights
  /// Layers that a file has after the others, to predict further tokens. They are not read, except for an MTP layer.
  std::uint32_t extra_layers = 0;

  bool qkv_biases = false;
  bool own_head_norms = false;  // each head is normalized with its own weights (Command R+)
  std::string name = {};        // general.name

  [[nodiscard]] std::string_view family_name() const { return kind == nullptr ? std::string_view() : kind->name; }
  [[nodiscard]] std::uint32_t rotated() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
  /// Dimensions of a head's own query and key, before latent attention transforms them.
  [[nodiscard]] std::uint32_t own_head_dim() const { return latent ? latent->plain_dim + rotated() : head_dim; }
  /// Numbers per row that the output projection of attention reads.
  [[nodiscard]] std::uint32_t attended_width() const { return heads * (latent ? latent->value_dim : head_dim); }
  /// Whether the extra layer is read: it drafts tokens (multi-token prediction). Its index is `layers`, and it is like
  /// a layer that sees all tokens.
  [[nodiscard]] bool has_mtp() const { return extra_layers == 1 && kind != nullptr && !kind->mtp.empty(); }
  /// The layers that are read.
  [[nodiscard]] std::uint32_t read_layers() const { return layers + (has_mtp() ? 1 : 0); }
  /// Whether the tensor of a GGUF file belongs to an extra layer and is not read.
  [[nodiscard]] bool is_extra(std::string_view tensor) const;
  [[nodiscard]] bool is_mixture(std::size_t layer) const { return experts != 0 && layer >= dense_layers; }
  /// The number of layers that are mixtures.
  [[nodiscard]] std::uint32_t mixture_layers() const {
    return experts == 0 ? 0 : layers - std::min(layers, dense_layers);
  }
  /// Requires a read shape.
  [[nodiscard]] layer_kind kind_of(std::size_t layer) const {
    return layer_kinds.empty() || layer >= layers ? layer_kind::full : layer_kinds[layer];
  }
  /// A shape for writing has its family's period.
  [[nodiscard]] bool is_recurrent(std::size_t layer) const {
    if (layer >= layers) return false;
    if (!layer_kinds.empty()) return layer_kinds[layer] == layer_kind::recurrent;
    return delta && (layer + 1) % kind->attention_period != 0;
  }
  [[nodiscard]] bool has_states() const { return delta || convolution_taps != 0; }
  /// Whether the layer has keys and values of its own.
  [[nodiscard]] bool keeps_tokens(std::size_t layer) const {
    return !is_recurrent(layer) && (layer >= layers || layer + (varied ? varied->sharing_layers : 0) < layers);
  }
  /// The layer whose keys and values a layer with attention reads: itself, or the last before it of its kind that has
  /// any. Requires a read shape.
  [[nodiscard]] std::size_t kv_layer_of(std::size_t layer) const;
  /// The number of layers with keys and values, without an MTP layer.
  [[nodiscard]] std::uint32_t attention_layers() const {
    std::uint32_t count = 0;
    for (std::uint32_t layer = 0; layer < layers; ++layer) count += keeps_tokens(layer) ? 1 : 0;
    return count;
  }
  /// The sizes of one layer, as those of a model whose layers are all like it.
  [[nodiscard]] model_shape of_layer(std::size_t layer) const;
  /// Tokens that a row of the layer sees, in a read shape; 0 means all.
  [[nodiscard]] std::uint32_t window_of(std::size_t layer) const {
    return kind_of(layer) == layer_kind::window ? window : 0;
  }
  /// The factor of the logits.
  [[nodiscard]] float logit_multiplier() const {
    if (logit_scale == 0) return 1;
    return kind->divides_logits ? 1 / logit_scale : logit_scale;
  }
  [[nodiscard]] head_norm head_norms() const {
    return own_head_norms ? head_norm::own : kind == nullptr ? head_norm::none : kind->head_norms;
  }
};

// These limits are far above any real decoder, and keep every product of sizes far below 2^63.
inline constexpr std::uint32_t layers_max = 4096;
inline constexpr std::uint32_t width_max = 1U << 20;
inline constexpr std::uint32_t head_dim_max = 512;     // limit of the kernels that rotate
inline constexpr std::uint32_t cached_dim_max = 1024;  // limit of the kernels that read latent attention's cache
inline constexpr std::uint32_t trained_context_max = 0x7fffffff;
inline constexpr std::uint32_t vocabulary_max = 1U << 24;
inline constexpr std::uint32_t experts_max = 1024;
inline constexpr std::uint32_t taps_max = 16;

/// Refuses sizes that would make a file that no reader accepts; the failure names the size.
result<void> check(const model_shape& shape);

/// What is wrong with the sizes of a varied_shape, as "expected ..., found ..."; empty if nothing is.
[[nodiscard]] std::string describe_wrong_variety(const model_shape& shape);

/// Whether LongRoPE's factors for long sequences apply, for a model opened for sequences of at most context_max tokens
/// (0 means the model's own context). This is decided once and not by a sequence's length, because cached keys, and the
/// answers of all sequences that share them, must agree.
[[nodiscard]] bool uses_long_factors(const model_shape& shape, std::uint32_t context_max);

/// Describes which LongRoPE factors answers depend on, as a part of a sentence: ", rotated for long sequences". Empty
/// without LongRoPE.
[[nodiscard]] std::string describe_rotation(const model_shape& shape, std::uint32_t context_max);

}  // namespace redline::architecture
