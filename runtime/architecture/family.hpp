#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/architecture/tensor_row.hpp"

namespace redline::architecture {

/// How the two halves of a rotated pair are arranged in a head: adjacent, or half a head apart.
enum class rope_pairs : std::uint8_t { adjacent, half_split };

enum class norm_kind : std::uint8_t { rms, layer };

/// The input of the down projection: act(gate(x)) * up(x), or act(up(x)) without a gate. kernel_table defines
/// clamped_swiglu.
enum class feed_forward_kind : std::uint8_t { gated_silu, gated_gelu, gelu, clamped_swiglu };

/// How queries and keys are normalized before rotation: not at all, each head by shared weights, each head by its own
/// weights, or all heads of a row together.
enum class head_norm : std::uint8_t { none, shared, own, row };

/// How a router's logits become the weights of a row's experts: by a softmax over all experts or over the chosen ones,
/// which is the same if the weights sum to one; or by a sigmoid of each logit.
enum class gating : std::uint8_t { softmax, softmax_of_chosen, sigmoid };

/// What grows with the factor f by which YaRN extends the context.
enum class yarn_growth : std::uint8_t {
  rotated,  // the rotated part of queries and keys, by 1 + 0.1 ln f
  scores,   // the scores, by the square of 1 + m ln f, with m from the file (DeepSeek 2)
  ratio,    // the rotated part, by (1 + 0.1 ln f) / (1 + 0.1 m ln f), with m from the file
};

struct model_shape;

/// A number of a shape that only some families have, under its name in both formats.
struct factor_key {
  std::string_view gguf;  // below "<family>."
  std::string_view hub;   // in a config.json; empty if it is derived there
  float model_shape::*into;
  float usual = 0;  // default of a GGUF file; 0 if the key is required
  enum class rule : std::uint8_t {
    positive,  // required in a config.json
    optional,  // 0 means none; a config.json may leave it out, or have it elsewhere
    scale,     // a scale of scores; the default is one over a root, see family::wide_score_layers
  } is = rule::positive;
};

/// A class name in "architectures" of a config.json.
struct hub_class {
  std::string_view name;
  bool has_windows = false;  // files of the class may state a sliding window that becomes a key
  bool has_experts = false;
  bool has_sigmoid = false;  // routers of says_mixture families choose by sigmoids
};

/// What all decoders of a family share: its row is all that distinguishes it from other families. If a file decides,
/// the row says what it may decide.
struct family {
  std::string_view name;  // general.architecture
  std::span<const hub_class> hub;
  /// The tensors of a layer, block by block in the order of converted files.
  std::span<const std::span<const tensor_row>> layer;
  std::span<const tensor_row> outer = {};  // tensors that the model has once; empty means outer_rows
  std::span<const tensor_row> mtp = {};    // those that an MTP layer has beside those of a layer; empty if none is read

  rope_pairs pairs = rope_pairs::half_split;
  bool hub_pairs_apart = false;     // folders use half_split where GGUF files have adjacent pairs
  bool hub_norms_less_one = false;  // folders store norms minus one, GGUF files do not
  head_norm head_norms = head_norm::none;
  bool gates_attention = false;        // the output of each head is multiplied by sigmoids of gates beside the queries
  std::uint32_t attention_period = 0;  // the last layer of each group of this size has attention, the others a state
  bool varies_layers = false;          // see varied_shape
  bool normalises_values = false;      // each head's values, without weights
  bool convolves = false;           // recurrent layers are short convolutions; the file says which layers are recurrent
  bool groups_value_heads = false;  // of recurrent layers: see delta_shape::groups_values
  norm_kind norm = norm_kind::rms;
  feed_forward_kind activation = feed_forward_kind::gated_silu;
  std::string_view epsilon_key = "rms_norm_eps";  // key in a config.json
  bool qkv_biases = false;                        // always present; otherwise a file may have them
  bool tied_unless_denied = false;                // default for a config.json without the key
  bool scales_embedding = false;                  // multiplies it by the square root of the width
  std::span<const factor_key> factors;
  bool divides_logits = false;  // by logit_scale, instead of multiplying
  std::uint32_t wide_score_layers =
      0;  // a model with this many layers scales scores by width / heads instead of head_dim

  /// If the file has a window, all but the last layer of each group of this size use it. 0 means that all layers use
  /// it; nullopt means that no layer may.
  std::optional<std::uint32_t> window_period;
  std::uint32_t usual_window = 0;    // default of a file without the key; 0 means none
  bool needs_window = false;         // gpt-oss
  bool window_unless_denied = true;  // "sliding_window" in a config.json counts unless its use is denied
  float window_rope_base =
      0;  // default for layers with a window; the file may override it; 0 means the same base as the others
  bool unscaled_windows = false;    // layers with a window use the others' rotation base, without scaling
  bool may_have_long_rope = false;  // LongRoPE has two sets of factors
  yarn_growth yarn_grows = yarn_growth::rotated;
  bool yarn_whole_pairs = true;  // YaRN's ends are rounded outward to whole pairs
  float hub_rotated = 0;         // the part of a head that is rotated, if a config.json may set it; 0 means all

  std::string_view experts_key = {};  // key in a config.json; empty if the family has no mixtures
  bool needs_experts = false;
  bool says_mixture = false;        // the file states which layers are mixtures, and how a row's weights are computed
  bool normalises_experts = false;  // the weights of a row's experts sum to one
  gating gates = gating::softmax;

  [[nodiscard]] bool has(role r) const;
  [[nodiscard]] bool has_norm_shifts() const { return has(role::attention_norm_shift); }
  [[nodiscard]] bool may_have_own_head_norms() const;
  /// Whether gate and up are one tensor.
  [[nodiscard]] bool has_fused_gate() const {
    return activation != feed_forward_kind::gelu && has(role::up) && !has(role::gate);
  }
  /// Whether layers with a mixture have a dense part, too, and add its output.
  [[nodiscard]] bool adds_mixture() const { return has(role::dense_post_norm); }
  [[nodiscard]] bool has_states() const { return attention_period != 0 || convolves; }
  [[nodiscard]] bool has_latents() const { return has(role::latent_down); }
};

/// All rows, in the order used by error messages.
[[nodiscard]] std::span<const family> families();
/// Null if there is no family of that name.
[[nodiscard]] const family* find_family(std::string_view name);
/// "llama, qwen2, ...".
[[nodiscard]] std::string family_names();
/// The families whose names are most similar, at most three, the nearest first.
[[nodiscard]] std::vector<const family*> nearest_families(std::string_view name);

/// The tensors that models of most families have once.
[[nodiscard]] std::span<const tensor_row> outer_rows();

}  // namespace redline::architecture
