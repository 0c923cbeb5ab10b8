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

/// YaRN's way to a longer context: slow rotations are slowed down by `factor`, fast ones are kept, those between get
/// something between.
/// Source: Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models" (2023), section 3.
struct yarn_scaling {
  float factor = 1;
  std::uint32_t original_context = 0;  // tokens
  float turns_kept = 32;               // pairs that turn this often within the original context keep their speed
  float turns_slowed = 1;              // pairs that turn no more often get all of the factor
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

/// What a layer's attention sees: all tokens, or a window of the last ones.
enum class layer_kind : std::uint8_t { full, window };

/// The numbers of one decoder; how it computes is its family's row. read_shape fills all of it from a GGUF file, and
/// later code relies on every number. A shape that is made to be written needs what put_shape writes, and there 0 is
/// what is usual in the family and leaves the key out.
struct model_shape {
  const family* kind = nullptr;  // null only where no model was read
  std::uint32_t layers = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;  // of queries, keys and values as attention reads them
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;  // tokens the model was trained for
  float rope_base = 0;
  float norm_epsilon = 0;
  bool tied_head = true;

  // A mixture of experts in every layer but the first `dense_layers`, where `experts` is not 0.
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;         // that a row goes to
  std::uint32_t expert_feed_forward = 0;  // hidden width of each
  std::uint32_t shared_feed_forward = 0;  // of the expert that all rows go to; 0: there is none

  float embedding_scale = 0;
  float residual_scale = 0;   // of what a layer's halves add to the residual stream
  float attention_scale = 0;  // of the scores; 0: one over the root of head_dim
  float logit_scale = 0;      // as files have it: Granite divides logits by it, Command-R multiplies them with it
  /// A query at position p is multiplied by 1 + this * ln(1 + floor(p / n)), n tokens being YaRN's original context.
  float temperature_scale = 0;
  float attention_cap = 0;  // soft caps: of the scores, once scaled, and of the logits; 0 in a read shape: none
  float logit_cap = 0;

  std::uint32_t window = 0;             // tokens that a row of a layer with a window sees, its own among them; 0: none
  std::uint32_t window_period = 0;      // to be written, where it is not the family's
  float window_rope_base = 0;           // of layers with a window, whose positions are not scaled; 0: as in the others
  std::vector<layer_kind> layer_kinds;  // by layer, in a read shape; empty: every layer sees all

  std::uint32_t rotary_dim = 0;   // leading dimensions of a head that are rotated; 0: all
  float rope_position_scale = 1;  // linear scaling: position * this
  std::optional<yarn_scaling> yarn;
  float yarn_log_multiplier = 0;    // to be written: m of yarn_growth
  float rope_magnitude = 0;         // what is rotated of queries and keys grows by it (YaRN, LongRoPE)
  std::uint32_t short_context = 0;  // LongRoPE: the longest context of its short factors, in tokens; 0: there is none

  std::optional<latent_shape> latent;
  std::uint32_t dense_layers = 0;  // before the first mixture
  bool normalises_experts = false;
  float expert_scale = 0;  // of the weights of a row's experts
  gating gates = gating::softmax;
  // Experts lie in so many equal groups one after the other, and a row's are chosen of its best ones.
  std::uint32_t expert_groups = 1;
  std::uint32_t expert_groups_used = 1;
  bool selection_bias = false;     // sigmoids have one added for the choice of experts, not in their weights
  std::uint32_t extra_layers = 0;  // that a file has after the others, to predict further tokens; they are not read

  bool qkv_biases = false;
  bool own_head_norms = false;  // each head is normalised with weights of its own (Command R+)
  std::string name = {};        // general.name

  [[nodiscard]] std::string_view family_name() const { return kind == nullptr ? std::string_view() : kind->name; }
  [[nodiscard]] std::uint32_t rotated() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
  /// Dimensions of a head's own query and key, before latent attention makes them what it reads.
  [[nodiscard]] std::uint32_t own_head_dim() const { return latent ? latent->plain_dim + rotated() : head_dim; }
  /// Numbers of a row that attention's output product reads.
  [[nodiscard]] std::uint32_t attended_width() const { return heads * (latent ? latent->value_dim : head_dim); }
  /// Whether the tensor of a GGUF file is one of the extra layers.
  [[nodiscard]] bool is_extra(std::string_view tensor) const;
  [[nodiscard]] bool is_mixture(std::size_t layer) const { return experts != 0 && layer >= dense_layers; }
  /// Layers that are mixtures.
  [[nodiscard]] std::uint32_t mixture_layers() const {
    return experts == 0 ? 0 : layers - std::min(layers, dense_layers);
  }
  /// In a read shape.
  [[nodiscard]] layer_kind kind_of(std::size_t layer) const {
    return layer_kinds.empty() ? layer_kind::full : layer_kinds[layer];
  }
  /// Tokens that a row of the layer sees, in a read shape; 0: all.
  [[nodiscard]] std::uint32_t window_of(std::size_t layer) const {
    return kind_of(layer) == layer_kind::window ? window : 0;
  }
  /// What logits are multiplied by.
  [[nodiscard]] float logit_multiplier() const {
    if (logit_scale == 0) return 1;
    return kind->divides_logits ? 1 / logit_scale : logit_scale;
  }
  [[nodiscard]] head_norm head_norms() const {
    return own_head_norms ? head_norm::own : kind == nullptr ? head_norm::none : kind->head_norms;
  }
};

// Far above any real decoder; they keep every product of sizes far below 2^63.
inline constexpr std::uint32_t layers_max = 4096;
inline constexpr std::uint32_t width_max = 1U << 20;
inline constexpr std::uint32_t head_dim_max = 256;     // that kernels rotate
inline constexpr std::uint32_t cached_dim_max = 1024;  // that kernels read, with latent attention
inline constexpr std::uint32_t trained_context_max = 0x7fffffff;
inline constexpr std::uint32_t vocabulary_max = 1U << 24;
inline constexpr std::uint32_t experts_max = 1024;

/// Refuses what would make a file that no reader takes; the failure says which size.
result<void> check(const model_shape& shape);

/// Whether LongRoPE's factors for long sequences hold, for a model that is opened for sequences of at most context_max
/// tokens; 0: of the model's own context. It is decided once and not by a sequence's length, because cached keys, and
/// the answers of all that share them, must agree.
[[nodiscard]] bool uses_long_factors(const model_shape& shape, std::uint32_t context_max);

/// Empty without LongRoPE; else which of its factors answers depend on, as a part of a sentence: ", rotated for long
/// sequences".
[[nodiscard]] std::string describe_rotation(const model_shape& shape, std::uint32_t context_max);

}  // namespace redline::architecture
