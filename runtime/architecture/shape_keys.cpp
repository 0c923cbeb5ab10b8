#include "runtime/architecture/shape_keys.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "runtime/architecture/tensors.hpp"

namespace redline::architecture {
namespace {

failure malformed(const gguf::gguf_file& file, const std::string& what) {
  return {errc::file_malformed, file.path() + ": " + what};
}
failure unsupported(const gguf::gguf_file& file, const std::string& what) {
  return {errc::unsupported_format, file.path() + ": " + what};
}

/// Reads keys below "<architecture>.".
class reader {
 public:
  reader(const gguf::gguf_file& file, const std::string& architecture) : file_(file), prefix_(architecture + ".") {}

  [[nodiscard]] std::string key(std::string_view name) const { return prefix_ + std::string(name); }

  /// Reads an integer in [1, most]. If it is absent, returns `otherwise`, or fails if that is 0.
  [[nodiscard]] result<std::uint32_t> count(std::string_view name, std::uint64_t most,
                                            std::uint32_t otherwise = 0) const {
    const std::string full = key(name);
    if (otherwise != 0 && file_.find(full) == nullptr) return otherwise;
    REDLINE_TRY_ASSIGN(const std::uint64_t n, file_.get_unsigned(full));
    if (n == 0 || n > most) {
      return malformed(file_, full + ": expected 1 to " + std::to_string(most) + ", found " + std::to_string(n));
    }
    return static_cast<std::uint32_t>(n);
  }

  /// Reads an integer in [1, most] for each layer, or one for all.
  [[nodiscard]] result<std::vector<std::uint32_t>> by_layer(std::string_view name, std::uint32_t layers,
                                                            std::uint64_t most) const {
    const std::string full = key(name);
    const gguf::value* const found = file_.find(full);
    if (found == nullptr || !std::holds_alternative<gguf::array>(found->data)) {
      REDLINE_TRY_ASSIGN(const std::uint32_t of_all, count(name, most));
      return std::vector<std::uint32_t>(layers, of_all);
    }
    const std::vector<double>& numbers = std::get<gguf::array>(found->data).numbers;
    if (numbers.size() < layers) {
      return malformed(file_, full + ": expected a number for each of " + std::to_string(layers) + " layers, found " +
                                  std::to_string(numbers.size()));
    }
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < layers; ++i) {
      const double n = numbers[i];
      if (!(n >= 1 && n <= static_cast<double>(most)) || n != std::floor(n)) {
        return malformed(file_, full + ": expected 1 to " + std::to_string(most) + ", found " + std::to_string(n) +
                                    " in layer " + std::to_string(i));
      }
      all.push_back(static_cast<std::uint32_t>(n));
    }
    return all;
  }

  /// Reads a number, or a flag as 0 or 1.
  [[nodiscard]] result<double> number_or_flag(std::string_view name) const {
    const std::string full = key(name);
    if (const auto flag = file_.get_bool(full)) return *flag ? 1.0 : 0.0;
    return file_.get_float(full);
  }

  /// Reads a positive finite number.
  [[nodiscard]] result<float> positive(std::string_view name, std::optional<double> otherwise = std::nullopt) const {
    const std::string full = key(name);
    REDLINE_TRY_ASSIGN(const double x, otherwise ? file_.get_float(full, *otherwise) : file_.get_float(full));
    const auto single = static_cast<float>(x);
    if (!std::isfinite(single) || single <= 0) {
      return malformed(file_, full + ": expected a positive number, found " + std::to_string(x));
    }
    return single;
  }

 private:
  const gguf::gguf_file& file_;
  std::string prefix_;
};

/// Newer files describe attention as it is computed, with a head's own sizes in addition; older files have only those,
/// with a KV head for each head.
result<void> read_latents(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  latent_shape& l = c.latent.emplace();
  REDLINE_TRY_ASSIGN(const std::uint32_t rotated, keys.count("rope.dimension_count", head_dim_max));
  REDLINE_TRY_ASSIGN(l.rank, keys.count("attention.kv_lora_rank", cached_dim_max - rotated));
  if (l.rank % 2 != 0) {
    return malformed(file,
                     keys.key("attention.kv_lora_rank") + ": expected an even number, found " + std::to_string(l.rank));
  }
  if (file.find(keys.key("attention.q_lora_rank")) != nullptr) {
    REDLINE_TRY_ASSIGN(l.query_rank, keys.count("attention.q_lora_rank", width_max));
  }
  const bool is_new = file.find(keys.key("attention.key_length_mla")) != nullptr;
  const std::string suffix = is_new ? "_mla" : "";
  REDLINE_TRY_ASSIGN(const std::uint32_t own_key, keys.count("attention.key_length" + suffix, head_dim_max));
  REDLINE_TRY_ASSIGN(l.value_dim, keys.count("attention.value_length" + suffix, head_dim_max));
  if (own_key <= rotated) {
    return malformed(file, keys.key("attention.key_length" + suffix) + ": expected more than the " +
                               std::to_string(rotated) + " dimensions that are rotated, found " +
                               std::to_string(own_key));
  }
  l.plain_dim = own_key - rotated;
  c.attention_scale = 1 / std::sqrt(static_cast<float>(own_key));
  c.head_dim = rotated + l.rank;
  struct size {
    std::string_view name;
    std::uint32_t wanted;
  };
  for (const size& s : {size{"attention.head_count_kv", is_new ? 1 : c.heads},
                        {"attention.key_length", is_new ? c.head_dim : own_key},
                        {"attention.value_length", is_new ? l.rank : l.value_dim}}) {
    REDLINE_TRY_ASSIGN(const std::uint64_t found, file.get_unsigned(keys.key(s.name), s.wanted));
    if (found == s.wanted) continue;
    return malformed(file,
                     keys.key(s.name) + ": expected " + std::to_string(s.wanted) + ", found " + std::to_string(found));
  }
  c.kv_heads = 1;
  return {};
}

/// LFM2: a number of KV heads for each layer, which is 0 in recurrent ones and the same in the others.
result<void> read_kv_heads_by_layer(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  const std::string key = keys.key("attention.head_count_kv");
  REDLINE_TRY_ASSIGN(const gguf::array* counts, file.get_array(key));
  if (counts->numbers.size() < c.layers) {
    return malformed(file, key + ": expected a number for each of " + std::to_string(c.layers) + " layers, found " +
                               std::to_string(counts->numbers.size()));
  }
  double heads = 0;
  for (std::uint32_t i = 0; i < c.layers; ++i) {
    const double found = counts->numbers[i];
    c.layer_kinds.push_back(found == 0 ? layer_kind::recurrent : layer_kind::full);
    if (found == 0) continue;
    if (heads == 0) heads = found;
    if (found != heads || !(found > 0 && found <= width_max) || found != std::floor(found)) {
      return unsupported(file, key + ": expected 0 or one positive number in all layers, found " +
                                   std::to_string(found) + " in layer " + std::to_string(i));
    }
  }
  if (heads == 0) return malformed(file, key + ": expected a layer with attention, found only 0");
  c.kv_heads = static_cast<std::uint32_t>(heads);
  return {};
}

/// Reads the number of KV heads, and the one size of all heads.
result<void> read_heads(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  if (c.kind->convolves) {
    REDLINE_TRY(read_kv_heads_by_layer(file, keys, c));
  } else if (c.kind->varies_layers) {
    REDLINE_TRY_ASSIGN(const auto by_layer, keys.by_layer("attention.head_count_kv", c.layers, width_max));
    c.kv_heads = by_layer.back();  // until read_varied knows which layers have a window
  } else {
    REDLINE_TRY_ASSIGN(c.kv_heads, keys.count("attention.head_count_kv", width_max, c.heads));
  }
  if (c.heads % c.kv_heads != 0) {
    return malformed(file, keys.key("attention.head_count_kv") + ": expected a divisor of " + std::to_string(c.heads) +
                               " heads, found " + std::to_string(c.kv_heads));
  }
  if (file.find(keys.key("attention.key_length")) == nullptr && c.width % c.heads != 0) {
    return malformed(file, keys.key("attention.head_count") + ": expected a divisor of the width " +
                               std::to_string(c.width) + ", found " + std::to_string(c.heads));
  }
  const std::uint32_t usual = c.width / c.heads;
  REDLINE_TRY_ASSIGN(c.head_dim, keys.count("attention.key_length", head_dim_max, usual));
  REDLINE_TRY_ASSIGN(const std::uint32_t value_length, keys.count("attention.value_length", head_dim_max, usual));
  if (c.head_dim % 2 != 0 || c.head_dim > head_dim_max) {
    return unsupported(file, "head size: expected an even number up to " + std::to_string(head_dim_max) + ", found " +
                                 std::to_string(c.head_dim));
  }
  if (value_length != c.head_dim) {
    return unsupported(file, keys.key("attention.value_length") + ": expected the key length " +
                                 std::to_string(c.head_dim) + ", found " + std::to_string(value_length));
  }
  return {};
}

result<void> read_sizes(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  for (const size_key& key : size_keys) {
    const bool is_hidden = key.into == &model_shape::feed_forward;
    if (is_hidden && c.kind->varies_layers) {
      REDLINE_TRY_ASSIGN(const auto by_layer, keys.by_layer(key.gguf, c.layers, key.most));
      c.feed_forward = by_layer.front();
      continue;
    }
    REDLINE_TRY_ASSIGN(c.*key.into, keys.count(key.gguf, key.most, is_hidden ? c.expert_feed_forward : 0));
  }
  REDLINE_TRY_ASSIGN(const std::uint64_t extra, file.get_unsigned(keys.key("nextn_predict_layers"), 0));
  if (extra >= c.layers) {
    return malformed(file, keys.key("nextn_predict_layers") + ": expected fewer than the " + std::to_string(c.layers) +
                               " layers of block_count, found " + std::to_string(extra));
  }
  c.extra_layers = static_cast<std::uint32_t>(extra);
  c.layers -= c.extra_layers;
  REDLINE_TRY(c.kind->has_latents() ? read_latents(file, keys, c) : read_heads(file, keys, c));
  if (std::uint64_t{c.heads} * c.head_dim > width_max) {
    return malformed(file, keys.key("attention.head_count") + ": " + std::to_string(c.heads) + " heads of " +
                               std::to_string(c.head_dim) + " are too wide");
  }
  return {};
}

/// Reads the sizes that differ among layers, once it is known which have a window.
result<void> read_varied(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  varied_shape& v = c.varied.emplace();
  if (c.layer_kinds.empty()) c.layer_kinds.assign(c.layers, layer_kind::full);
  REDLINE_TRY_ASSIGN(v.window_head_dim, keys.count("attention.key_length_swa", head_dim_max, c.head_dim));
  REDLINE_TRY_ASSIGN(const std::uint32_t values,
                     keys.count("attention.value_length_swa", head_dim_max, v.window_head_dim));
  if (values != v.window_head_dim) {
    return unsupported(file, keys.key("attention.value_length_swa") + ": expected the key length " +
                                 std::to_string(v.window_head_dim) + ", found " + std::to_string(values));
  }
  REDLINE_TRY_ASSIGN(v.window_rotary_dim, keys.count("rope.dimension_count_swa", head_dim_max, v.window_head_dim));
  const std::string sharing_key = keys.key("attention.shared_kv_layers");
  REDLINE_TRY_ASSIGN(const std::uint64_t sharing, file.get_unsigned(sharing_key, 0));
  if (sharing >= c.layers) {
    return malformed(file, sharing_key + ": expected fewer than the " + std::to_string(c.layers) + " layers, found " +
                               std::to_string(sharing));
  }
  v.sharing_layers = static_cast<std::uint32_t>(sharing);
  REDLINE_TRY_ASSIGN(const std::uint64_t input, file.get_unsigned(keys.key("embedding_length_per_layer_input"), 0));
  v.layer_input = static_cast<std::uint32_t>(std::min<std::uint64_t>(input, width_max + 1));

  // Numbers of one kind of layer must agree; those of a kind that no layer is are never used.
  REDLINE_TRY_ASSIGN(const auto kv_heads, keys.by_layer("attention.head_count_kv", c.layers, width_max));
  REDLINE_TRY_ASSIGN(const auto hidden, keys.by_layer("feed_forward_length", c.layers, width_max));
  v.window_kv_heads = c.kv_heads;
  v.sharing_feed_forward = c.feed_forward;
  for (std::uint32_t i = c.layers; i-- > 0;) {
    (c.layer_kinds[i] == layer_kind::window ? v.window_kv_heads : c.kv_heads) = kv_heads[i];
    (c.keeps_tokens(i) ? c.feed_forward : v.sharing_feed_forward) = hidden[i];
  }
  std::uint32_t first_full = c.layers;
  for (std::uint32_t i = c.layers; i-- > 0;) {
    const model_shape one = c.of_layer(i);
    if (one.kv_heads != kv_heads[i] || one.feed_forward != hidden[i]) {
      return unsupported(file,
                         keys.key(one.kv_heads != kv_heads[i] ? "attention.head_count_kv" : "feed_forward_length") +
                             ": expected one number for layers of a kind, found another in layer " + std::to_string(i));
    }
    if (c.layer_kinds[i] == layer_kind::full) first_full = i;
  }
  v.keys_are_values =
      first_full < c.layers && file.find_tensor("blk." + std::to_string(first_full) + ".attn_v.weight") == nullptr;
  const std::string wrong = describe_wrong_variety(c);
  if (!wrong.empty()) return malformed(file, "sizes of layers: " + wrong);
  return {};
}

/// Reads the sizes of recurrent layers, and which layers are recurrent.
result<void> read_recurrent(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  delta_shape& d = c.delta.emplace();
  REDLINE_TRY_ASSIGN(d.taps, keys.count("ssm.conv_kernel", taps_max));
  REDLINE_TRY_ASSIGN(d.head_dim, keys.count("ssm.state_size", head_dim_max));
  REDLINE_TRY_ASSIGN(d.key_heads, keys.count("ssm.group_count", width_max / head_dim_max));
  REDLINE_TRY_ASSIGN(d.value_heads, keys.count("ssm.time_step_rank", width_max / head_dim_max));
  d.groups_values = c.kind->groups_value_heads;
  struct rule {
    std::string_view name;
    bool holds;
    std::string wanted;
    std::uint64_t found;
  };
  REDLINE_TRY_ASSIGN(const std::uint64_t inner, file.get_unsigned(keys.key("ssm.inner_size"), d.values()));
  for (const rule& r : {rule{"ssm.state_size", d.head_dim % 32 == 0, "a multiple of 32", d.head_dim},
                        {"ssm.time_step_rank", d.value_heads % d.key_heads == 0,
                         "a multiple of the " + std::to_string(d.key_heads) + " of ssm.group_count", d.value_heads},
                        {"ssm.inner_size", inner == d.values(), std::to_string(d.values()), inner}}) {
    if (r.holds) continue;
    return malformed(file, keys.key(r.name) + ": expected " + r.wanted + ", found " + std::to_string(r.found));
  }
  REDLINE_TRY_ASSIGN(const std::uint32_t period,
                     keys.count("full_attention_interval", layers_max, c.kind->attention_period));
  for (std::uint32_t i = 0; i < c.layers; ++i)
    c.layer_kinds.push_back((i + 1) % period == 0 ? layer_kind::full : layer_kind::recurrent);
  const std::string key = keys.key("attention.recurrent_layers");
  if (file.find(key) != nullptr) {
    REDLINE_TRY_ASSIGN(const gguf::array* flags, file.get_array(key));
    if (flags->numbers.size() < c.layers) {
      return malformed(file, key + ": expected a flag for each of " + std::to_string(c.layers) + " layers, found " +
                                 std::to_string(flags->numbers.size()));
    }
    for (std::uint32_t i = 0; i < c.layers; ++i)
      c.layer_kinds[i] = flags->numbers[i] != 0 ? layer_kind::recurrent : layer_kind::full;
  }
  if (c.attention_layers() != 0) return {};
  return malformed(file, keys.key("full_attention_interval") + ": expected a layer with attention among " +
                             std::to_string(c.layers) + ", found only recurrent ones");
}

constexpr std::string_view log_multiplier = "rope.scaling.yarn_log_multiplier";

/// Sets c.rope_magnitude to what the file states in addition to what follows from the factor.
result<yarn_scaling> read_yarn(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  yarn_scaling y;
  REDLINE_TRY_ASSIGN(y.factor, keys.positive("rope.scaling.factor"));
  REDLINE_TRY_ASSIGN(y.original_context,
                     keys.count("rope.scaling.original_context_length", trained_context_max, c.context));
  REDLINE_TRY_ASSIGN(y.turns_kept, keys.positive("rope.scaling.yarn_beta_fast", y.turns_kept));
  REDLINE_TRY_ASSIGN(y.turns_slowed, keys.positive("rope.scaling.yarn_beta_slow", y.turns_slowed));
  REDLINE_TRY_ASSIGN(const float yarn_attention, keys.positive("rope.scaling.yarn_attn_factor", 1.0));
  if (y.factor < 1) {
    return malformed(file,
                     keys.key("rope.scaling.factor") + ": expected at least 1, found " + std::to_string(y.factor));
  }
  if (y.turns_kept <= y.turns_slowed) {
    return malformed(file, keys.key("rope.scaling.yarn_beta_fast") + ": expected more than yarn_beta_slow " +
                               std::to_string(y.turns_slowed) + ", found " + std::to_string(y.turns_kept));
  }
  struct setting {
    std::string_view name;
    double wanted;
  };
  const bool scores_grow = c.kind->yarn_grows == yarn_growth::scores;
  std::vector<setting> fixed{{"rope.scaling.yarn_ext_factor", 1}};
  if (scores_grow) fixed.push_back({"rope.scaling.yarn_attn_factor", 1});
  if (c.kind->yarn_grows == yarn_growth::rotated) fixed.push_back({log_multiplier, 0});
  for (const setting& s : fixed) {
    REDLINE_TRY_ASSIGN(const double found, file.get_float(keys.key(s.name), s.wanted));
    if (found != s.wanted) {
      return unsupported(
          file, keys.key(s.name) + ": expected " + std::to_string(s.wanted) + ", found " + std::to_string(found));
    }
  }
  if (!scores_grow) c.rope_magnitude *= yarn_attention * (1 + 0.1F * std::log(y.factor));
  if (c.kind->yarn_grows == yarn_growth::rotated) return y;
  REDLINE_TRY_ASSIGN(const float multiplier, keys.positive(log_multiplier));
  if (!scores_grow) {
    c.rope_magnitude /= 1 + 0.1F * multiplier * std::log(y.factor);
    return y;
  }
  const float growth = 1 + multiplier * std::log(y.factor);
  c.attention_scale *= growth * growth;
  return y;
}

constexpr std::string_view long_factors = "rope_factors_long.weight", short_factors = "rope_factors_short.weight";

/// A file uses LongRoPE if it has its factors; no key says so.
result<void> read_long_rope(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  if (file.find_tensor(long_factors) == nullptr && file.find_tensor(short_factors) == nullptr) return {};
  REDLINE_TRY_ASSIGN(c.short_context, keys.count("rope.scaling.original_context_length", trained_context_max));
  return {};
}

result<void> read_rope(const gguf::gguf_file& file, const reader& keys, const family& kind, model_shape& c) {
  REDLINE_TRY_ASSIGN(c.rotary_dim, keys.count("rope.dimension_count", c.head_dim, c.head_dim));
  if (c.rotary_dim % 2 != 0) {
    return malformed(
        file, keys.key("rope.dimension_count") + ": expected an even number, found " + std::to_string(c.rotary_dim));
  }
  REDLINE_TRY_ASSIGN(c.rope_base, keys.positive("rope.freq_base", 10000.0));
  REDLINE_TRY_ASSIGN(c.rope_magnitude, keys.positive("rope.scaling.attn_factor", 1.0));
  if (c.latent && c.rope_magnitude != 1) {
    return unsupported(
        file, keys.key("rope.scaling.attn_factor") + ": expected 1, found " + std::to_string(c.rope_magnitude));
  }
  if (kind.may_have_long_rope) REDLINE_TRY(read_long_rope(file, keys, c));
  const std::string type_key = keys.key("rope.scaling.type");
  if (file.find(type_key) != nullptr) {
    REDLINE_TRY_ASSIGN(const std::string_view type, file.get_string(type_key));
    if (type == "linear") {
      REDLINE_TRY_ASSIGN(const float factor, keys.positive("rope.scaling.factor"));
      c.rope_position_scale = 1 / factor;
    } else if (type == "yarn") {
      REDLINE_TRY_ASSIGN(c.yarn, read_yarn(file, keys, c));
    } else if (type != "none" && (type != "longrope" || c.short_context == 0)) {
      return unsupported(file, type_key + ": expected 'none', 'linear' or 'yarn', found '" + std::string(type) + "'");
    }
  } else if (file.find(keys.key("rope.scale_linear")) != nullptr) {
    REDLINE_TRY_ASSIGN(const float factor, keys.positive("rope.scale_linear"));
    c.rope_position_scale = 1 / factor;
  }
  return {};
}

/// Refuses settings that only unsupported mixtures use.
result<void> refuse_other_mixtures(const gguf::gguf_file& file, const reader& keys, const family& kind) {
  struct setting {
    std::string_view name;
    double wanted;
    bool is_read = false;
  };
  const auto settings =
      std::to_array<setting>({{"expert_gating_func", kind.gates == gating::softmax ? 1.0 : 3.0, kind.says_mixture},
                              {"expert_weights_scale", 1, kind.says_mixture},
                              {"expert_weights_norm", kind.normalises_experts ? 1.0 : 0.0, kind.says_mixture},
                              {"expert_group_count", 1, kind.says_mixture},
                              {"expert_group_used_count", 1, kind.says_mixture},
                              {"leading_dense_block_count", 0, kind.says_mixture},
                              {"interleave_moe_layer_step", 1},
                              {"moe_every_n_layers", 1}});
  for (const setting& s : settings) {
    if (s.is_read || file.find(keys.key(s.name)) == nullptr) continue;
    REDLINE_TRY_ASSIGN(const double number, keys.number_or_flag(s.name));
    if (number != s.wanted) {
      return unsupported(
          file, keys.key(s.name) + ": expected " + std::to_string(s.wanted) + ", found " + std::to_string(number));
    }
  }
  return {};
}

/// Reads how a router chooses. Files of GLM-4.7-Flash may leave the function out, as those of DeepSeek 2 do.
result<void> read_gating(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  const std::string key = keys.key("expert_gating_func");
  REDLINE_TRY_ASSIGN(const std::uint64_t function, file.get_unsigned(key, 1));
  if (function != 1 && function != 2) {
    return unsupported(file, key + ": expected 1 (softmax) or 2 (sigmoid), found " + std::to_string(function));
  }
  c.gates = function == 2 ? gating::sigmoid : gating::softmax;
  REDLINE_TRY_ASSIGN(const std::uint64_t groups, file.get_unsigned(keys.key("expert_group_count"), 1));
  c.expert_groups = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(groups, 1, experts_max + 1));
  REDLINE_TRY_ASSIGN(const std::uint64_t used, file.get_unsigned(keys.key("expert_group_used_count"), groups));
  c.expert_groups_used = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(used, 1, experts_max + 1));
  if (c.experts % c.expert_groups != 0 || c.expert_groups_used > c.expert_groups) {
    return malformed(file, keys.key("expert_group_count") + ": expected equal groups of " + std::to_string(c.experts) +
                               " experts and no more used groups than there are, found " + std::to_string(used) +
                               " of " + std::to_string(groups));
  }
  if (c.experts / c.expert_groups * c.expert_groups_used < c.experts_used) {
    return malformed(file, keys.key("expert_group_used_count") + ": expected groups with at least " +
                               std::to_string(c.experts_used) + " experts, found " + std::to_string(used) + " of " +
                               std::to_string(c.experts / c.expert_groups));
  }
  if (c.gates == gating::softmax && c.expert_groups > 1) {
    return unsupported(file,
                       keys.key("expert_group_count") + ": expected 1 with a softmax, found " + std::to_string(groups));
  }
  return {};
}

/// DeepSeek 2: reads the layers before the first mixture, their weights, and the experts that all rows go to, as one
/// wide expert.
result<void> read_mixture(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  REDLINE_TRY_ASSIGN(const std::uint64_t shared, file.get_unsigned(keys.key("expert_shared_count"), 0));
  if (shared > experts_max || shared * c.expert_feed_forward > width_max) {
    return malformed(file, keys.key("expert_shared_count") + ": expected experts no wider than " +
                               std::to_string(width_max) + " in total, found " + std::to_string(shared) + " of width " +
                               std::to_string(c.expert_feed_forward));
  }
  c.shared_feed_forward = static_cast<std::uint32_t>(shared * c.expert_feed_forward);
  REDLINE_TRY_ASSIGN(const std::uint64_t dense, file.get_unsigned(keys.key("leading_dense_block_count"), 0));
  if (dense >= layers_max) {
    return malformed(file, keys.key("leading_dense_block_count") + ": expected less than " +
                               std::to_string(layers_max) + ", found " + std::to_string(dense));
  }
  c.dense_layers = static_cast<std::uint32_t>(dense);
  REDLINE_TRY_ASSIGN(c.expert_scale, keys.positive("expert_weights_scale", 1.0));
  if (file.find(keys.key("expert_weights_norm")) != nullptr) {
    REDLINE_TRY_ASSIGN(c.normalises_experts, file.get_bool(keys.key("expert_weights_norm")));
  }
  return read_gating(file, keys, c);
}

/// Reads the sizes of a mixture, before the width of the dense feed-forward part, which a mixture need not have.
result<void> read_experts(const gguf::gguf_file& file, const reader& keys, const family& kind, model_shape& c) {
  if (file.find(keys.key("expert_count")) != nullptr) {
    REDLINE_TRY_ASSIGN(const std::uint64_t experts, file.get_unsigned(keys.key("expert_count")));
    if (experts > experts_max || (experts == 0 && kind.needs_experts)) {
      return malformed(file, keys.key("expert_count") + ": expected 1 to " + std::to_string(experts_max) + ", found " +
                                 std::to_string(experts));
    }
    c.experts = static_cast<std::uint32_t>(experts);
  } else if (kind.needs_experts) {
    return malformed(file, "metadata '" + keys.key("expert_count") + "' is missing");
  }
  if (c.experts == 0) return {};
  if (kind.experts_key.empty()) {
    return unsupported(
        file, keys.key("expert_count") + ": expected a dense model, found " + std::to_string(c.experts) + " experts");
  }
  REDLINE_TRY_ASSIGN(c.experts_used, keys.count("expert_used_count", c.experts));
  std::uint64_t dense = 0;
  if (!kind.varies_layers) {
    REDLINE_TRY_ASSIGN(dense, file.get_unsigned(keys.key("feed_forward_length"), 0));
  }
  const auto usual = static_cast<std::uint32_t>(std::min<std::uint64_t>(dense, width_max));
  REDLINE_TRY_ASSIGN(c.expert_feed_forward, keys.count("expert_feed_forward_length", width_max, usual));
  if (kind.has(role::shared_router)) {
    REDLINE_TRY_ASSIGN(c.shared_feed_forward, keys.count("expert_shared_feed_forward_length", width_max, usual));
  }
  c.normalises_experts = kind.normalises_experts;
  if (kind.says_mixture) REDLINE_TRY(read_mixture(file, keys, c));
  return refuse_other_mixtures(file, keys, kind);
}

/// Refuses metadata that would change the arithmetic in an unsupported way.
result<void> refuse_extras(const gguf::gguf_file& file, const reader& keys, const family& kind, const model_shape& c) {
  for (const std::string_view extra :
       {"attention.clamp_kqv", "attention.max_alibi_bias", "attn_logit_softcapping", "final_logit_softcapping",
        "logit_scale", "residual_scale", "embedding_scale", "attention.scale"}) {
    const bool is_read = std::ranges::find(kind.factors, extra, &factor_key::gguf) != kind.factors.end();
    if (!is_read && file.find(keys.key(extra)) != nullptr) {
      return unsupported(file, keys.key(extra) + ": not supported in " + std::string(kind.name));
    }
  }
  if (kind.window_rope_base == 0 && !kind.unscaled_windows && file.find(keys.key("rope.freq_base_swa")) != nullptr) {
    REDLINE_TRY_ASSIGN(const float base, keys.positive("rope.freq_base_swa"));
    if (base != c.rope_base) {
      return unsupported(file, keys.key("rope.freq_base_swa") + ": expected rope.freq_base " +
                                   std::to_string(c.rope_base) + ", found " + std::to_string(base));
    }
  }
  return {};
}

/// Which layers have a window: from the file's period or per-layer flags, or the family's default.
result<std::vector<bool>> read_window_pattern(const gguf::gguf_file& file, const reader& keys, const family& kind,
                                              std::uint32_t layers) {
  const std::string key = keys.key("attention.sliding_window_pattern");
  const gguf::value* found = file.find(key);
  std::vector<bool> pattern(layers);
  if (found != nullptr && std::holds_alternative<gguf::array>(found->data)) {
    const auto& flags = std::get<gguf::array>(found->data);
    if (flags.numbers.size() != layers) {
      return malformed(file, key + ": expected a period or one number for each of " + std::to_string(layers) +
                                 " layers, found " + std::to_string(flags.size()) + " entries");
    }
    for (std::uint32_t i = 0; i < layers; ++i) pattern[i] = flags.numbers[i] != 0;
    return pattern;
  }
  REDLINE_TRY_ASSIGN(const std::uint64_t period, file.get_unsigned(key, *kind.window_period));
  for (std::uint32_t i = 0; i < layers; ++i) pattern[i] = period == 0 || i % period + 1 < period;
  return pattern;
}

/// Reads windows, and the settings of layers that have one.
result<void> read_windows(const gguf::gguf_file& file, const reader& keys, const family& kind, model_shape& c) {
  const std::string key = keys.key("attention.sliding_window");
  if (kind.needs_window && file.find(key) == nullptr) return malformed(file, "metadata '" + key + "' is missing");
  REDLINE_TRY_ASSIGN(const std::uint64_t window, file.get_unsigned(key, kind.usual_window));
  if (window > trained_context_max || (window == 0 && kind.needs_window)) {
    return malformed(
        file, key + ": expected 1 to " + std::to_string(trained_context_max) + ", found " + std::to_string(window));
  }
  const float usual_base = kind.unscaled_windows ? c.rope_base : kind.window_rope_base;
  const bool is_full = window == 0 || (window >= c.context && usual_base == 0);
  if (is_full) return {};
  if (!kind.window_period) {
    return unsupported(file, key + ": expected full attention in " + std::string(kind.name) + ", found a window of " +
                                 std::to_string(window));
  }
  REDLINE_TRY_ASSIGN(const std::vector<bool> pattern, read_window_pattern(file, keys, kind, c.layers));
  c.window = static_cast<std::uint32_t>(window);
  for (const bool has_window : pattern) c.layer_kinds.push_back(has_window ? layer_kind::window : layer_kind::full);
  if (usual_base == 0) return {};
  REDLINE_TRY_ASSIGN(c.window_rope_base, keys.positive("rope.freq_base_swa", usual_base));
  return {};
}

result<void> read_factors(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  // The largest models of some families scale scores differently, and no key distinguishes them.
  const std::uint32_t of_heads = c.layers == c.kind->wide_score_layers ? c.width / c.heads : c.head_dim;
  for (const factor_key& key : c.kind->factors) {
    std::optional<double> usual;
    if (key.usual != 0) usual = key.usual;
    if (key.is == factor_key::rule::scale) usual = 1 / std::sqrt(1.0 * of_heads);
    if (key.is == factor_key::rule::optional) {
      REDLINE_TRY_ASSIGN(const double cap, file.get_float(keys.key(key.gguf), key.usual));
      if (cap == 0) continue;
    }
    REDLINE_TRY_ASSIGN(c.*key.into, keys.positive(key.gguf, usual));
  }
  if (c.temperature_scale != 0 && !c.yarn) {
    return malformed(file, keys.key("attention.temperature_scale") +
                               ": expected YaRN, whose original context is where the scale begins, found no "
                               "rope.scaling.type 'yarn'");
  }
  return {};
}

result<void> read_vocabulary(const gguf::gguf_file& file, model_shape& c) {
  const gguf::tensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding == nullptr) return malformed(file, "tensor 'token_embd.weight' is missing");
  if (embedding->dimensions.size() != 2 || embedding->dimensions[1] == 0 || embedding->dimensions[1] > vocabulary_max) {
    return malformed(
        file, "tensor 'token_embd.weight': expected two dimensions, the second 1 to " + std::to_string(vocabulary_max));
  }
  c.vocabulary = static_cast<std::uint32_t>(embedding->dimensions[1]);
  if (file.find("tokenizer.ggml.tokens") != nullptr) {
    REDLINE_TRY_ASSIGN(const gguf::array* tokens, file.get_array("tokenizer.ggml.tokens"));
    if (tokens->size() != c.vocabulary) {
      return malformed(file, "tokenizer.ggml.tokens: expected " + std::to_string(c.vocabulary) +
                                 " entries, the rows of 'token_embd.weight', found " + std::to_string(tokens->size()));
    }
  }
  return {};
}

/// Derives settings of a mixture from other sizes.
void read_late_mixture(const gguf::gguf_file& file, const reader& keys, model_shape& c) {
  const std::string first = "blk." + std::to_string(c.dense_layers) + ".";
  c.selection_bias = file.find_tensor(first + "exp_probs_b.bias") != nullptr;
  // The first files of GLM-4.7-Flash leave the function out.
  const bool is_glm = c.layers == 47 && c.vocabulary == 154880;
  if (is_glm && file.find(keys.key("expert_gating_func")) == nullptr) c.gates = gating::sigmoid;
}

/// Names the nearest families, and how the file's first layer differs from theirs.
failure unknown_family(const gguf::gguf_file& file, std::string_view name) {
  constexpr std::string_view first_layer = "blk.0.";
  std::vector<std::string> tensors;
  for (const gguf::tensor& t : file.tensors()) {
    if (t.name.starts_with(first_layer)) tensors.emplace_back(t.name.substr(first_layer.size()));
  }
  std::string what = "general.architecture: expected one of " + family_names() + ", found '" + std::string(name) + "'";
  if (!tensors.empty()) what += " (nearest: " + describe_nearest(name, tensors) + ")";
  return unsupported(file, what);
}

/// What a shape with a varied_shape has instead of one number for all layers.
void put_varied(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  const varied_shape& v = *s.varied;
  std::vector<std::int32_t> kv_heads, hidden, windows;
  for (std::uint32_t i = 0; i < s.layers; ++i) {
    const model_shape one = s.of_layer(i);
    kv_heads.push_back(static_cast<std::int32_t>(one.kv_heads));
    hidden.push_back(static_cast<std::int32_t>(one.feed_forward));
    windows.push_back(s.kind_of(i) == layer_kind::window ? 1 : 0);
  }
  to.put_i32s(prefix + "attention.head_count_kv", kv_heads);
  to.put_i32s(prefix + "feed_forward_length", hidden);
  to.put_i32s(prefix + "attention.sliding_window_pattern", windows);
  to.put_u32(prefix + "attention.key_length_swa", v.window_head_dim);
  to.put_u32(prefix + "attention.value_length_swa", v.window_head_dim);
  to.put_u32(prefix + "rope.dimension_count_swa", v.window_rotary_dim);
  to.put_u32(prefix + "attention.shared_kv_layers", v.sharing_layers);
  to.put_u32(prefix + "embedding_length_per_layer_input", v.layer_input);
}

void put_heads(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  to.put_u32(prefix + "attention.head_count", s.heads);
  if (s.varied) {
    put_varied(s, prefix, to);
  } else if (s.convolution_taps != 0) {
    std::vector<std::int32_t> by_layer;
    for (std::uint32_t i = 0; i < s.layers; ++i)
      by_layer.push_back(s.is_recurrent(i) ? 0 : static_cast<std::int32_t>(s.kv_heads));
    to.put_i32s(prefix + "attention.head_count_kv", by_layer);
    to.put_u32(prefix + "shortconv.l_cache", s.convolution_taps);
  } else {
    to.put_u32(prefix + "attention.head_count_kv", s.kv_heads);
  }
  to.put_u32(prefix + "attention.key_length", s.head_dim);
  to.put_u32(prefix + "attention.value_length", s.latent ? s.latent->rank : s.head_dim);
  if (!s.latent) return;
  to.put_u32(prefix + "attention.key_length_mla", s.own_head_dim());
  to.put_u32(prefix + "attention.value_length_mla", s.latent->value_dim);
  to.put_u32(prefix + "attention.kv_lora_rank", s.latent->rank);
  if (s.latent->query_rank != 0) to.put_u32(prefix + "attention.q_lora_rank", s.latent->query_rank);
}

void put_mixture(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  to.put_u32(prefix + "leading_dense_block_count", s.dense_layers);
  to.put_u32(prefix + "expert_shared_count", s.shared_feed_forward / s.expert_feed_forward);
  to.put_u32(prefix + "expert_gating_func", s.gates == gating::sigmoid ? 2 : 1);
  if (s.expert_groups > 1) {
    to.put_u32(prefix + "expert_group_count", s.expert_groups);
    to.put_u32(prefix + "expert_group_used_count", s.expert_groups_used);
  }
  to.put_bool(prefix + "expert_weights_norm", s.normalises_experts);
  to.put_f32(prefix + "expert_weights_scale", s.expert_scale == 0 ? 1 : s.expert_scale);
}

void put_experts(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  to.put_u32(prefix + "expert_count", s.experts);
  to.put_u32(prefix + "expert_used_count", s.experts_used);
  to.put_u32(prefix + "expert_feed_forward_length", s.expert_feed_forward);
  if (s.shared_feed_forward != 0 && !s.kind->says_mixture) {
    to.put_u32(prefix + "expert_shared_feed_forward_length", s.shared_feed_forward);
  }
}

void put_rope_scaling(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  if (s.yarn) {
    to.put_string(prefix + "rope.scaling.type", "yarn");
    to.put_f32(prefix + "rope.scaling.factor", s.yarn->factor);
    to.put_u32(prefix + "rope.scaling.original_context_length", s.yarn->original_context);
  }
  if (s.yarn_log_multiplier != 0) to.put_f32(prefix + std::string(log_multiplier), s.yarn_log_multiplier);
  if (s.short_context != 0) to.put_u32(prefix + "rope.scaling.original_context_length", s.short_context);
  if (s.rope_magnitude != 0) to.put_f32(prefix + "rope.scaling.attn_factor", s.rope_magnitude);
}

void put_recurrent(const model_shape& s, const std::string& prefix, gguf::gguf_writer& to) {
  const delta_shape& d = *s.delta;
  if (!s.layer_kinds.empty()) {
    std::vector<std::int32_t> flags(s.layers);
    std::ranges::transform(s.layer_kinds, flags.begin(), [](layer_kind kind) { return kind == layer_kind::recurrent; });
    to.put_i32s(prefix + "attention.recurrent_layers", flags);
  }
  to.put_u32(prefix + "ssm.conv_kernel", d.taps);
  to.put_u32(prefix + "ssm.state_size", d.head_dim);
  to.put_u32(prefix + "ssm.group_count", d.key_heads);
  to.put_u32(prefix + "ssm.time_step_rank", d.value_heads);
  to.put_u32(prefix + "ssm.inner_size", d.values());
  // Pairs by the coordinate of an image that rotates them; all coordinates of a text are the position.
  const auto pairs = static_cast<std::int32_t>(s.rotated() / 2);
  to.put_i32s(prefix + "rope.dimension_sections", std::array{(pairs + 2) / 3, (pairs + 1) / 3, pairs / 3, 0});
}

}  // namespace

result<model_shape> read_shape(const gguf::gguf_file& file) {
  model_shape c;
  REDLINE_TRY_ASSIGN(const std::string_view name_of_it, file.get_string("general.architecture"));
  c.kind = find_family(name_of_it);
  if (c.kind == nullptr) return unknown_family(file, name_of_it);
  const family& kind = *c.kind;
  if (file.find("general.name") != nullptr) {
    REDLINE_TRY_ASSIGN(const std::string_view name, file.get_string("general.name"));
    c.name = name;
  }
  c.embedding_scale = c.residual_scale = c.expert_scale = 1;
  const reader keys(file, std::string(kind.name));
  REDLINE_TRY(read_experts(file, keys, kind, c));
  REDLINE_TRY(read_sizes(file, keys, c));
  REDLINE_TRY(read_rope(file, keys, kind, c));
  REDLINE_TRY(refuse_extras(file, keys, kind, c));
  REDLINE_TRY(read_windows(file, keys, kind, c));
  if (kind.varies_layers) REDLINE_TRY(read_varied(file, keys, c));
  if (kind.attention_period != 0) REDLINE_TRY(read_recurrent(file, keys, c));
  if (kind.convolves) {
    REDLINE_TRY_ASSIGN(c.convolution_taps, keys.count("shortconv.l_cache", taps_max));
    if (c.convolution_taps < 2) {
      return malformed(file, keys.key("shortconv.l_cache") + ": expected 2 to " + std::to_string(taps_max) +
                                 ", found 1, which leaves no state");
    }
  }
  REDLINE_TRY(read_factors(file, keys, c));
  REDLINE_TRY(read_vocabulary(file, c));
  const bool rms = kind.norm == norm_kind::rms;
  REDLINE_TRY_ASSIGN(c.norm_epsilon,
                     keys.positive(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"));
  if (kind.scales_embedding) c.embedding_scale = std::sqrt(static_cast<float>(c.width));
  c.qkv_biases = kind.qkv_biases || file.find_tensor("blk.0.attn_q.bias") != nullptr;
  c.own_head_norms = kind.may_have_own_head_norms() && file.find_tensor("blk.0.attn_q_norm.weight") != nullptr;
  if (kind.says_mixture) read_late_mixture(file, keys, c);
  c.tied_head = file.find_tensor("output.weight") == nullptr;
  return c;
}

bool keeps_states(const gguf::gguf_file& file) {
  const auto name = file.get_string("general.architecture");
  const family* const kind = name ? find_family(*name) : nullptr;
  return kind != nullptr && kind->has_states();
}

bool has_mtp(const gguf::gguf_file& file) {
  const auto name = file.get_string("general.architecture");
  const family* const kind = name ? find_family(*name) : nullptr;
  if (kind == nullptr || kind->mtp.empty()) return false;
  const auto layers = file.get_unsigned(std::string(*name) + ".nextn_predict_layers", 0);
  return layers && *layers == 1;
}

void put_shape(const model_shape& s, gguf::gguf_writer& to) {
  const family& kind = *s.kind;
  const std::string prefix = std::string(kind.name) + ".";
  to.put_string("general.architecture", kind.name);
  for (const size_key& key : size_keys) {
    const bool is_put_later = key.into == &model_shape::heads || (s.varied && key.into == &model_shape::feed_forward);
    const std::uint32_t number = key.into == &model_shape::layers ? s.read_layers() : s.*key.into;
    if (!is_put_later) to.put_u32(prefix + std::string(key.gguf), number);
  }
  if (s.has_mtp()) to.put_u32(prefix + "nextn_predict_layers", s.extra_layers);
  if (s.experts != 0) put_experts(s, prefix, to);
  put_heads(s, prefix, to);
  if (kind.says_mixture) put_mixture(s, prefix, to);
  to.put_u32(prefix + "rope.dimension_count", s.rotated());
  to.put_f32(prefix + "rope.freq_base", s.rope_base);
  const bool rms = kind.norm == norm_kind::rms;
  to.put_f32(prefix + (rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"), s.norm_epsilon);
  for (const factor_key& key : kind.factors) {
    if (s.*key.into != 0) to.put_f32(prefix + std::string(key.gguf), s.*key.into);
  }
  if (s.window_rope_base != 0) to.put_f32(prefix + "rope.freq_base_swa", s.window_rope_base);
  if (s.window != 0) to.put_u32(prefix + "attention.sliding_window", s.window);
  if (s.window_period != 0) to.put_u32(prefix + "attention.sliding_window_pattern", s.window_period);
  put_rope_scaling(s, prefix, to);
  if (s.delta) put_recurrent(s, prefix, to);
  to.put_u32(prefix + "vocab_size", s.vocabulary);
}

}  // namespace redline::architecture
