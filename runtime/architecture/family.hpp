#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/architecture/tensor_row.hpp"

namespace redline::architecture {

/// How the two halves of a rotated pair lie in a head: neighbors, or half a head apart.
enum class rope_pairs : std::uint8_t { adjacent, half_split };

enum class norm_kind : std::uint8_t { rms, layer };

/// The input of the down projection: act(gate(x)) * up(x), or, without a gate, act(up(x)). clamped_swiglu: as
/// kernel_table says.
enum class feed_forward_kind : std::uint8_t { gated_silu, gated_gelu, gelu, clamped_swiglu };

/// How queries and keys are normalised before they are rotated: not, each head by weights that all share, each by its
/// own, or all heads of a row together.
enum class head_norm : std::uint8_t { none, shared, own, row };

/// How a router's logits become the weights of a row's experts: by a softmax over all or over those that are chosen,
/// which is the same where the weights sum to one; or each by its sigmoid.
enum class gating : std::uint8_t { softmax, softmax_of_chosen, sigmoid };

/// What grows with the length to which YaRN stretches a context, by a factor f.
enum class yarn_growth : std::uint8_t {
  rotated,  // what is rotated of queries and keys, by 1 + 0.1 ln f
  scores,   // by the square of 1 + m ln f, with m of the file (DeepSeek 2)
  ratio,    // what is rotated, by (1 + 0.1 ln f) / (1 + 0.1 m ln f), with m of the file
};

struct model_shape;

/// A number of a shape that only some families have, as both formats name it.
struct factor_key {
  std::string_view gguf;  // below "<family>."
  std::string_view hub;   // in a config.json; empty: it is derived there
  float model_shape::*into;
  float usual = 0;  // where a GGUF file does not say; 0: it must
  enum class rule : std::uint8_t {
    positive,  // and a config.json must say it
    optional,  // 0: none; a config.json need not say it, or says it elsewhere
    scale,     // of scores; usual is one over a root, see family::wide_score_layers
  } is = rule::positive;
};

/// A class name in "architectures" of a config.json.
struct hub_class {
  std::string_view name;
  bool has_windows = false;  // files of the class may say a sliding window that becomes a key
  bool has_experts = false;
  bool has_sigmoid = false;  // routers of says_mixture choose by sigmoids
};

/// What is the same in all decoders of a family: its row is all that distinguishes it from the others. Where a file
/// decides, the row says what it may decide.
struct family {
  std::string_view name;  // general.architecture
  std::span<const hub_class> hub;
  /// The tensors of a layer, block by block in the order of converted files.
  std::span<const std::span<const tensor_row>> layer;

  rope_pairs pairs = rope_pairs::half_split;
  bool hub_pairs_apart = false;     // folders have half_split where files have adjacent pairs
  bool hub_norms_less_one = false;  // folders store norms less one, files do not
  head_norm head_norms = head_norm::none;
  norm_kind norm = norm_kind::rms;
  feed_forward_kind activation = feed_forward_kind::gated_silu;
  std::string_view epsilon_key = "rms_norm_eps";  // in a config.json
  bool qkv_biases = false;                        // always there; else where the file has them
  bool tied_unless_denied = false;                // what a config.json that does not say it means
  bool scales_embedding = false;                  // by the square root of the width
  std::span<const factor_key> factors;
  bool divides_logits = false;          // by logit_scale; else they are multiplied
  std::uint32_t wide_score_layers = 0;  // a model of so many layers scales scores by width / heads, not head_dim

  /// In each group of so many layers all but the last have a window, where the file has one; 0: all layers have one;
  /// nullopt: none may.
  std::optional<std::uint32_t> window_period;
  std::uint32_t usual_window = 0;    // where the file does not say; 0: none
  bool needs_window = false;         // gpt-oss
  bool window_unless_denied = true;  // a config.json's "sliding_window" counts where nothing says that it is used
  float window_rope_base = 0;        // usual in layers with a window, and the file may say another; 0: the others'
  bool unscaled_windows = false;     // layers with a window rotate by the base of the others, without scaling
  bool may_have_long_rope = false;   // LongRoPE's two sets of factors
  yarn_growth yarn_grows = yarn_growth::rotated;
  bool yarn_whole_pairs = true;  // YaRN's ends are rounded outwards to whole pairs
  float hub_rotated = 0;         // the part of a head that is rotated where a config.json may say it; 0: all

  std::string_view experts_key = {};  // in a config.json; empty: there are no mixtures
  bool needs_experts = false;
  bool says_mixture = false;        // the file says which layers have one, and how a row's weights are made
  bool normalises_experts = false;  // the weights of a row's experts sum to one
  gating gates = gating::softmax;

  [[nodiscard]] bool has(role r) const;
  [[nodiscard]] bool has_norm_shifts() const { return has(role::attention_norm_shift); }
  [[nodiscard]] bool may_have_own_head_norms() const;
  /// Gate and up are one tensor.
  [[nodiscard]] bool has_fused_gate() const {
    return activation != feed_forward_kind::gelu && has(role::up) && !has(role::gate);
  }
  [[nodiscard]] bool has_latents() const { return has(role::latent_down); }
};

/// All rows, in the order in which error messages list them.
[[nodiscard]] std::span<const family> families();
/// Null: there is no family of that name.
[[nodiscard]] const family* find_family(std::string_view name);
/// "llama, qwen2, ...".
[[nodiscard]] std::string family_names();
/// The families whose names are most like it, at most three, the nearest first.
[[nodiscard]] std::vector<const family*> nearest_families(std::string_view name);

/// Tensors that a model has once.
[[nodiscard]] std::span<const tensor_row> outer_rows();

}  // namespace redline::architecture
