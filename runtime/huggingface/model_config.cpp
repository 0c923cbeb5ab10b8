#include "runtime/huggingface/model_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "runtime/architecture/shape_keys.hpp"
#include "runtime/base/hex.hpp"

namespace redline::huggingface {
namespace {

using architecture::family;
using architecture::feed_forward_kind;
using architecture::model_shape;

/// A model of several parts, whose text part is described by "text_config".
struct wrapper {
  std::string_view theirs;
  std::string_view text_type;  // "model_type" of the text part
  std::string_view text;       // the architecture of the text part alone
  std::string_view usual;      // the configuration class's defaults for members that files leave out, as JSON
};
constexpr auto wrappers = std::to_array<wrapper>({
    {.theirs = "Gemma3ForConditionalGeneration",
     .text_type = "gemma3_text",
     .text = "Gemma3ForCausalLM",
     .usual = R"({"vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
                  "rms_norm_eps": 1e-6, "max_position_embeddings": 131072, "query_pre_attn_scalar": 256})"},
    {.theirs = "Gemma4ForConditionalGeneration",
     .text_type = "gemma4_text",
     .text = "Gemma4ForCausalLM",
     .usual = "{}"},
    {.theirs = "Mistral3ForConditionalGeneration", .text_type = "mistral", .text = "MistralForCausalLM", .usual = "{}"},
    {.theirs = "Mistral3ForConditionalGeneration",
     .text_type = "ministral3",
     .text = "Ministral3ForCausalLM",
     .usual = "{}"},
    {.theirs = "Qwen3_5ForConditionalGeneration",
     .text_type = "qwen3_5_text",
     .text = "Qwen3_5ForCausalLM",
     .usual = "{}"},
    {.theirs = "Qwen3_5MoeForConditionalGeneration",
     .text_type = "qwen3_5_moe_text",
     .text = "Qwen3_5MoeForCausalLM",
     .usual = "{}"},
});

constexpr std::uint64_t size_max = 0x7fffffff;  // fits every integer; `check` applies the real limits

/// A class and the family whose row names it.
struct known_class {
  const family& kind;
  const architecture::hub_class& named;
};

std::string known_classes() {
  std::string names;
  for (const family& f : architecture::families()) {
    for (const auto& named : f.hub) names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  for (std::string_view last; const wrapper& w : wrappers) {
    if (std::exchange(last, w.theirs) != w.theirs) names += ", " + std::string(w.theirs);
  }
  return names;
}

result<known_class> read_class(const json_object& config) {
  REDLINE_TRY_ASSIGN(const json* names, config.array("architectures"));
  if (names->size() == 1 && names->front().is_string()) {
    for (const family& f : architecture::families()) {
      const auto it =
          std::ranges::find(f.hub, names->front().get_ref<const std::string&>(), &architecture::hub_class::name);
      if (it != f.hub.end()) return known_class{f, *it};
    }
  }
  return config.unsupported("architectures", "expected one of " + known_classes() + ", found " +
                                                 (names->size() == 1 ? show_json(names->front()) : show_json(*names)));
}

result<std::uint32_t> size_at(const json_object& config, std::string_view name) {
  REDLINE_TRY_ASSIGN(const std::uint64_t size, config.whole(name, 1, size_max));
  return static_cast<std::uint32_t>(size);
}

result<std::uint32_t> size_or(const json_object& config, std::string_view name, std::uint32_t otherwise) {
  return config.has(name) ? size_at(config, name) : otherwise;
}

/// Reads a number that may be 0, which is the default.
result<std::uint32_t> count_at(const json_object& config, std::string_view name) {
  if (!config.has(name)) return 0U;
  REDLINE_TRY_ASSIGN(const std::uint64_t count, config.whole(name, 0, size_max));
  return static_cast<std::uint32_t>(count);
}

failure wrong_types(const json_object& config, std::uint32_t layers, std::size_t found) {
  return config.malformed("layer_types",
                          "expected " + std::to_string(layers) + " entries, found " + std::to_string(found));
}

/// Reads heads that compute their keys and values from a latent vector.
result<void> read_latents(const json_object& config, model_shape& s) {
  if (!s.kind->has_latents()) return {};
  architecture::latent_shape& l = s.latent.emplace();
  REDLINE_TRY_ASSIGN(l.rank, size_at(config, "kv_lora_rank"));
  REDLINE_TRY_ASSIGN(l.query_rank, size_or(config, "q_lora_rank", 0));
  REDLINE_TRY_ASSIGN(l.plain_dim, size_at(config, "qk_nope_head_dim"));
  REDLINE_TRY_ASSIGN(s.rotary_dim, size_at(config, "qk_rope_head_dim"));
  REDLINE_TRY_ASSIGN(l.value_dim, size_at(config, "v_head_dim"));
  s.head_dim = static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{l.rank} + s.rotary_dim, size_max));
  s.kv_heads = 1;
  REDLINE_TRY_ASSIGN(const bool biases, config.flag_or("attention_bias", false));
  if (biases) return config.unsupported("attention_bias", "expected false");
  REDLINE_TRY_ASSIGN(const bool neighbors, config.flag_or("rope_interleave", true));
  if (!neighbors) return config.unsupported("rope_interleave", "expected true");
  return {};
}

/// Reads which layers are recurrent; `recurrent` is the name of that type.
result<std::vector<architecture::layer_kind>> read_kinds(const json_object& config, const std::string& recurrent,
                                                         std::uint32_t layers) {
  REDLINE_TRY_ASSIGN(const json* types, config.array("layer_types"));
  if (types->size() != layers) return wrong_types(config, layers, types->size());
  std::vector<architecture::layer_kind> kinds;
  for (const json& type : *types) {
    const bool is_full = type == "full_attention";
    if (!is_full && type != recurrent) {
      return config.unsupported("layer_types", "expected '" + recurrent + "' or 'full_attention' in layer " +
                                                   std::to_string(kinds.size()) + ", found " + show_json(type));
    }
    kinds.push_back(is_full ? architecture::layer_kind::full : architecture::layer_kind::recurrent);
  }
  return kinds;
}

/// LFM2: older files list the layers with attention instead of all layers' types, and their feed-forward width is to be
/// adjusted.
result<void> read_convolutions(const json_object& config, model_shape& s) {
  REDLINE_TRY_ASSIGN(s.convolution_taps, size_at(config, "conv_L_cache"));
  REDLINE_TRY_ASSIGN(const bool biases, config.flag_or("conv_bias", false));
  if (biases) return config.unsupported("conv_bias", "expected false");
  if (s.layers > architecture::layers_max) return {};  // refused by check
  if (config.has("layer_types")) {
    REDLINE_TRY_ASSIGN(s.layer_kinds, read_kinds(config, "conv", s.layers));
  } else {
    REDLINE_TRY_ASSIGN(const json* attention, config.array("full_attn_idxs"));
    s.layer_kinds.assign(s.layers, architecture::layer_kind::recurrent);
    for (const json& index : *attention) {
      if (!index.is_number_unsigned() || index.get<std::uint64_t>() >= s.layers) {
        return config.malformed("full_attn_idxs", "expected numbers of layers below " + std::to_string(s.layers) +
                                                      ", found " + show_json(index));
      }
      s.layer_kinds[index.get<std::size_t>()] = architecture::layer_kind::full;
    }
  }
  REDLINE_TRY_ASSIGN(const bool adjusts, config.flag_or("block_auto_adjust_ff_dim", s.kind->experts_key.empty()));
  if (!adjusts) return {};
  REDLINE_TRY_ASSIGN(const double factor, config.positive_or("block_ffn_dim_multiplier", 1));
  REDLINE_TRY_ASSIGN(const std::uint32_t unit, size_or(config, "block_multiple_of", 256));
  const double width = std::floor(factor * std::floor(2.0 * s.feed_forward / 3));
  const double rounded = std::ceil(width / unit) * unit;
  if (!(rounded >= 1 && rounded <= architecture::width_max)) {
    return config.malformed("block_ffn_dim_multiplier", "expected a width of at most " +
                                                            std::to_string(architecture::width_max) + ", found " +
                                                            std::to_string(rounded));
  }
  s.feed_forward = static_cast<std::uint32_t>(rounded);
  return {};
}

/// Reads the sizes of recurrent layers, and which layers are recurrent.
result<void> read_recurrent(const json_object& config, model_shape& s) {
  if (s.kind->convolves) return read_convolutions(config, s);
  if (s.kind->attention_period == 0) return {};
  architecture::delta_shape& d = s.delta.emplace();
  d.groups_values = s.kind->groups_value_heads;
  REDLINE_TRY_ASSIGN(d.taps, size_at(config, "linear_conv_kernel_dim"));
  REDLINE_TRY_ASSIGN(d.key_heads, size_at(config, "linear_num_key_heads"));
  REDLINE_TRY_ASSIGN(d.value_heads, size_at(config, "linear_num_value_heads"));
  REDLINE_TRY_ASSIGN(d.head_dim, size_at(config, "linear_key_head_dim"));
  REDLINE_TRY_ASSIGN(const std::uint32_t value_dim, size_at(config, "linear_value_head_dim"));
  if (value_dim != d.head_dim) {
    return config.unsupported(
        "linear_value_head_dim",
        "expected the " + std::to_string(d.head_dim) + " of linear_key_head_dim, found " + std::to_string(value_dim));
  }
  struct setting {
    std::string_view name;
    bool wanted;
  };
  for (const setting& t : {setting{"attn_output_gate", true}, {"attention_bias", false}}) {
    REDLINE_TRY_ASSIGN(const bool found, config.flag_or(t.name, t.wanted));
    if (found != t.wanted) return config.unsupported(t.name, t.wanted ? "expected true" : "expected false");
  }
  REDLINE_TRY_ASSIGN(const std::uint32_t period, size_or(config, "full_attention_interval", s.kind->attention_period));
  if (s.layers > architecture::layers_max) return {};  // refused by check
  std::vector<architecture::layer_kind> kinds(s.layers, architecture::layer_kind::recurrent);
  for (std::uint32_t i = period - 1; i < s.layers; i += period) kinds[i] = architecture::layer_kind::full;
  if (config.has("layer_types")) {
    REDLINE_TRY_ASSIGN(kinds, read_kinds(config, "linear_attention", s.layers));
  }
  bool is_usual = true;
  for (std::uint32_t i = 0; i < s.layers; ++i)
    is_usual = is_usual && s.is_recurrent(i) == (kinds[i] == architecture::layer_kind::recurrent);
  if (!is_usual) s.layer_kinds = std::move(kinds);
  return {};
}

/// Reads the layers before the first mixture, and how a mixture's weights are computed.
result<void> read_mixture(const json_object& config, const known_class& of, model_shape& s) {
  if (!s.kind->says_mixture) return {};
  const bool by_sigmoid = of.named.has_sigmoid;
  for (const char* name : {"first_k_dense_replace", "num_dense_layers"}) {
    if (!config.has(name)) continue;
    REDLINE_TRY_ASSIGN(const std::uint64_t dense, config.whole(name, 0, size_max));
    s.dense_layers = static_cast<std::uint32_t>(dense);
  }
  REDLINE_TRY_ASSIGN(const double scale, config.positive_or("routed_scaling_factor", 1));
  REDLINE_TRY_ASSIGN(s.normalises_experts, config.flag_or("norm_topk_prob", by_sigmoid));
  if (!by_sigmoid && s.normalises_experts && scale != 1) {
    return config.unsupported("routed_scaling_factor",
                              "expected 1 if weights are normalized, found " + std::to_string(scale));
  }
  s.expert_scale = static_cast<float>(scale);
  struct setting {
    std::string_view name;
    std::string_view wanted;
  };
  for (const setting& t : {setting{"scoring_func", by_sigmoid ? "sigmoid" : "softmax"},
                           {"topk_method", by_sigmoid ? "noaux_tc" : "greedy"}}) {
    REDLINE_TRY_ASSIGN(const std::string found, config.text_or(t.name, t.wanted));
    if (found != t.wanted) {
      return config.unsupported(t.name, "expected " + quote_bytes(t.wanted) + ", found " + quote_bytes(found));
    }
  }
  REDLINE_TRY_ASSIGN(const std::uint32_t frequency, size_or(config, "moe_layer_freq", 1));
  if (frequency != 1) {
    return config.unsupported("moe_layer_freq", "expected 1, found " + std::to_string(frequency));
  }
  REDLINE_TRY_ASSIGN(s.extra_layers, count_at(config, "num_nextn_predict_layers"));
  if (!by_sigmoid) return {};
  s.gates = architecture::gating::sigmoid;
  s.selection_bias = true;
  REDLINE_TRY_ASSIGN(s.expert_groups, size_or(config, "n_group", 1));
  REDLINE_TRY_ASSIGN(s.expert_groups_used, size_or(config, "topk_group", s.expert_groups));
  return {};
}

/// Every layer except DeepSeek's first ones is a mixture; no known file differs.
result<void> read_experts(const json_object& config, const known_class& of, model_shape& s) {
  if (!of.named.has_experts) return {};
  const family& kind = of.kind;
  if (kind.adds_mixture() && !config.has(kind.experts_key)) return {};
  REDLINE_TRY_ASSIGN(s.experts, size_at(config, kind.experts_key));
  REDLINE_TRY_ASSIGN(s.experts_used, size_at(config, kind.adds_mixture() ? "top_k_experts" : "num_experts_per_tok"));
  REDLINE_TRY_ASSIGN(s.expert_feed_forward, size_or(config, "moe_intermediate_size", s.feed_forward));
  if (kind.has(architecture::role::shared_router)) {
    REDLINE_TRY_ASSIGN(s.shared_feed_forward, size_at(config, "shared_expert_intermediate_size"));
  }
  if (kind.says_mixture) {
    REDLINE_TRY_ASSIGN(const std::uint32_t shared, size_or(config, "n_shared_experts", 0));
    if (std::uint64_t{shared} * s.expert_feed_forward > size_max) {
      return config.malformed("n_shared_experts", "expected fewer shared experts, found " + std::to_string(shared));
    }
    s.shared_feed_forward = shared * s.expert_feed_forward;
    return {};
  }
  REDLINE_TRY_ASSIGN(const bool normalises, config.flag_or("norm_topk_prob", kind.normalises_experts));
  if (normalises != kind.normalises_experts) {
    return config.unsupported("norm_topk_prob", std::string("expected ") +
                                                    (kind.normalises_experts ? "true" : "false") + " in a " +
                                                    std::string(of.named.name));
  }
  if (config.has("decoder_sparse_step")) {
    REDLINE_TRY_ASSIGN(const std::uint64_t step, config.whole("decoder_sparse_step", 0, size_max));
    if (step != 1) return config.unsupported("decoder_sparse_step", "expected 1, found " + std::to_string(step));
  }
  if (config.has("mlp_only_layers")) {
    REDLINE_TRY_ASSIGN(const json* layers, config.array("mlp_only_layers"));
    if (!layers->empty()) return config.unsupported("mlp_only_layers", "expected none, found " + show_json(*layers));
  }
  return {};
}

result<void> read_factors(const json_object& config, model_shape& s) {
  for (const architecture::factor_key& key : s.kind->factors) {
    if (key.hub.empty() || (key.is == architecture::factor_key::rule::optional && !config.has(key.hub))) continue;
    REDLINE_TRY_ASSIGN(const double number, config.positive(key.hub));
    s.*key.into = static_cast<float>(number);
  }
  return {};
}

/// Reads whether heads are normalized. The context is called model_max_length in newer files.
result<void> read_command_r(const json_object& config, model_shape& s) {
  if (!s.kind->may_have_own_head_norms()) return {};
  REDLINE_TRY_ASSIGN(s.own_head_norms, config.flag_or("use_qk_norm", false));
  REDLINE_TRY_ASSIGN(s.context, size_or(config, "model_max_length", s.context));
  return {};
}

bool has_factor(const family& kind, float model_shape::*factor) {
  return std::ranges::find(kind.factors, factor, &architecture::factor_key::into) != kind.factors.end();
}

/// Reads the scale of scores, if readers of the file would not know it.
result<void> read_gemma(const json_object& config, model_shape& s) {
  if (s.kind->wide_score_layers == 0) return {};
  if (!has_factor(*s.kind, &model_shape::attention_cap) && config.has("attn_logit_softcapping")) {
    return config.unsupported("attn_logit_softcapping", "expected none in Gemma 3");
  }
  REDLINE_TRY_ASSIGN(const bool both_ways, config.flag_or("use_bidirectional_attention", false));
  if (both_ways) {
    return config.unsupported("use_bidirectional_attention",
                              "expected false: only attention to earlier tokens is supported");
  }
  REDLINE_TRY_ASSIGN(const double scalar, config.positive_or("query_pre_attn_scalar", s.head_dim));
  const std::uint32_t known = s.layers == s.kind->wide_score_layers ? s.width / s.heads : s.head_dim;
  if (scalar != known) s.attention_scale = static_cast<float>(1 / std::sqrt(scalar));
  return {};
}

/// Gemma 4: reads sizes that differ among layers. The usual keys are those of layers with a window.
result<void> read_varied(const json_object& config, model_shape& s) {
  if (!s.kind->varies_layers) return {};
  architecture::varied_shape& v = s.varied.emplace();
  v.window_head_dim = v.window_rotary_dim = s.head_dim;
  v.window_kv_heads = s.kv_heads;
  REDLINE_TRY_ASSIGN(s.head_dim, size_at(config, "global_head_dim"));
  REDLINE_TRY_ASSIGN(s.kv_heads, size_or(config, "num_global_key_value_heads", s.kv_heads));
  REDLINE_TRY_ASSIGN(v.sharing_layers, count_at(config, "num_kv_shared_layers"));
  REDLINE_TRY_ASSIGN(v.layer_input, count_at(config, "hidden_size_per_layer_input"));
  REDLINE_TRY_ASSIGN(const bool is_wide, config.flag_or("use_double_wide_mlp", false));
  v.sharing_feed_forward = s.feed_forward * (is_wide ? 2 : 1);
  REDLINE_TRY_ASSIGN(v.keys_are_values, config.flag_or("attention_k_eq_v", false));
  REDLINE_TRY_ASSIGN(const json* types, config.array("layer_types"));
  if (types->size() != s.layers) return wrong_types(config, s.layers, types->size());
  for (const json& type : *types) {
    if (type != "sliding_attention" && type != "full_attention") {
      return config.unsupported("layer_types",
                                "expected 'sliding_attention' or 'full_attention', found " + show_json(type));
    }
    using enum architecture::layer_kind;
    s.layer_kinds.push_back(type == "full_attention" ? full : window);
  }
  return {};
}

/// The key of the dense feed-forward width: LFM2's older one goes first, and mixtures need not have any.
std::string_view width_key(const json_object& config, const known_class& of, std::string_view usual) {
  if (of.kind.convolves && config.has("block_ff_dim")) return "block_ff_dim";
  return of.named.has_experts && !config.has(usual) ? "moe_intermediate_size" : usual;
}

result<void> read_sizes(const json_object& config, const known_class& of, model_shape& s) {
  for (const architecture::size_key& key : architecture::size_keys) {
    const std::string_view name = key.into == &model_shape::feed_forward ? width_key(config, of, key.hub) : key.hub;
    REDLINE_TRY_ASSIGN(s.*key.into, size_at(config, name));
  }
  REDLINE_TRY_ASSIGN(s.kv_heads, size_or(config, "num_key_value_heads", s.heads));
  REDLINE_TRY(read_experts(config, of, s));
  REDLINE_TRY(read_factors(config, s));
  REDLINE_TRY_ASSIGN(s.vocabulary, size_at(config, "vocab_size"));
  if (!config.has("head_dim") && s.width % s.heads != 0) {
    return config.malformed("num_attention_heads", "expected a divisor of the width " + std::to_string(s.width) +
                                                       ", found " + std::to_string(s.heads));
  }
  REDLINE_TRY_ASSIGN(s.head_dim, size_or(config, "head_dim", std::max(1U, s.width / s.heads)));
  REDLINE_TRY(read_gemma(config, s));
  REDLINE_TRY(read_varied(config, s));
  REDLINE_TRY(read_latents(config, s));
  REDLINE_TRY(read_recurrent(config, s));
  REDLINE_TRY(read_mixture(config, of, s));
  REDLINE_TRY(read_command_r(config, s));
  REDLINE_TRY_ASSIGN(const double epsilon, config.positive(of.kind.epsilon_key));
  s.norm_epsilon = static_cast<float>(epsilon);
  REDLINE_TRY_ASSIGN(s.tied_head, config.flag_or("tie_word_embeddings", of.kind.tied_unless_denied));
  const auto possible = architecture::check(s);
  if (!possible) return failure{possible.error().code, config.file() + ": " + possible.error().context};
  return {};
}

result<llama3_scaling> read_llama3(const json_object& rope) {
  llama3_scaling s;
  REDLINE_TRY_ASSIGN(s.factor, rope.positive("factor"));
  REDLINE_TRY_ASSIGN(s.low_frequency_factor, rope.positive("low_freq_factor"));
  REDLINE_TRY_ASSIGN(s.high_frequency_factor, rope.positive("high_freq_factor"));
  REDLINE_TRY_ASSIGN(s.original_context, rope.positive("original_max_position_embeddings"));
  if (s.high_frequency_factor <= s.low_frequency_factor) {
    return rope.malformed("high_freq_factor", "expected more than low_freq_factor " +
                                                  std::to_string(s.low_frequency_factor) + ", found " +
                                                  std::to_string(s.high_frequency_factor));
  }
  return s;
}

/// Reads "mscale" and "mscale_all_dim" if the family's YaRN uses them: DeepSeek has the same number twice, so its
/// scores grow and its rotated part does not.
result<void> read_growth(const json_object& rope, architecture::yarn_growth grows, yarn_scaling& s) {
  REDLINE_TRY_ASSIGN(const double all, rope.positive("mscale_all_dim"));
  REDLINE_TRY_ASSIGN(const double rotated, rope.positive("mscale"));
  const bool scores_grow = grows == architecture::yarn_growth::scores;
  const double wanted = scores_grow ? all : 1;
  if (rotated != wanted) {
    return rope.unsupported("mscale", "expected " + std::string(scores_grow ? "mscale_all_dim " : "") +
                                          std::to_string(wanted) + ", found " + std::to_string(rotated));
  }
  if (s.attention_factor != 0) return rope.unsupported("attention_factor", "expected none, as YaRN has mscale");
  s.log_multiplier = scores_grow ? 0.1 * all : all;
  return {};
}

result<yarn_scaling> read_yarn(const json_object& rope, model_shape& shape) {
  yarn_scaling s;
  REDLINE_TRY_ASSIGN(s.factor, rope.positive("factor"));
  REDLINE_TRY_ASSIGN(s.original_context, rope.positive_or("original_max_position_embeddings", shape.context));
  REDLINE_TRY_ASSIGN(s.turns_kept, rope.positive_or("beta_fast", s.turns_kept));
  REDLINE_TRY_ASSIGN(s.turns_slowed, rope.positive_or("beta_slow", s.turns_slowed));
  if (rope.has("attention_factor")) {
    REDLINE_TRY_ASSIGN(s.attention_factor, rope.positive("attention_factor"));
  }
  if (s.factor < 1) return rope.malformed("factor", "expected at least 1, found " + std::to_string(s.factor));
  if (shape.kind->yarn_grows != architecture::yarn_growth::rotated) {
    REDLINE_TRY(read_growth(rope, shape.kind->yarn_grows, s));
  } else {
    for (const char* name : {"mscale", "mscale_all_dim"}) {
      if (rope.has(name)) return rope.unsupported(name, "expected none with YaRN in this family");
    }
  }
  if (rope.has("llama_4_scaling_beta")) {
    if (!has_factor(*shape.kind, &model_shape::temperature_scale)) {
      return rope.unsupported("llama_4_scaling_beta", "expected none with YaRN in this family");
    }
    REDLINE_TRY_ASSIGN(const double beta, rope.positive("llama_4_scaling_beta"));
    shape.temperature_scale = static_cast<float>(beta);
  }
  // Files do not state it: the architecture determines it.
  const bool truncates = shape.kind->yarn_whole_pairs;
  REDLINE_TRY_ASSIGN(const bool truncate, rope.flag_or("truncate", true));
  if (truncate != truncates) {
    return rope.unsupported("truncate", std::string("expected ") + (truncates ? "true" : "false"));
  }
  return s;
}

/// Reads positive numbers, one for each rotated pair.
result<std::vector<float>> read_factors(const json_object& rope, std::string_view name, std::uint32_t count) {
  REDLINE_TRY_ASSIGN(const json* numbers, rope.array(name));
  std::vector<float> factors;
  for (const json& number : *numbers) {
    if (!number.is_number() || !(number.get<float>() > 0) || !std::isfinite(number.get<float>())) {
      return rope.malformed(name, "expected positive numbers, found " + show_json(number));
    }
    factors.push_back(number.get<float>());
  }
  if (factors.size() != count) {
    return rope.malformed(name, "expected " + std::to_string(count) + " numbers, one for each rotated pair, found " +
                                    std::to_string(factors.size()));
  }
  return factors;
}

result<void> read_long_rope(const json_object& config, const json_object& rope, model_config& c) {
  model_shape& s = c.shape;
  const json_object& where = rope.has("original_max_position_embeddings") ? rope : config;
  REDLINE_TRY_ASSIGN(s.short_context, size_at(where, "original_max_position_embeddings"));
  for (const char* name : {"short_mscale", "long_mscale"}) {
    if (rope.has(name)) return rope.unsupported(name, "expected none with LongRoPE");
  }
  REDLINE_TRY_ASSIGN(auto of_long, read_factors(rope, "long_factor", s.rotated() / 2));
  REDLINE_TRY_ASSIGN(auto of_short, read_factors(rope, "short_factor", s.rotated() / 2));
  c.factors = long_rope{std::move(of_long), std::move(of_short)};
  const double longer = static_cast<double>(s.context) / s.short_context;
  const double usual = longer <= 1 ? 1 : std::sqrt(1 + std::log(longer) / std::log(s.short_context));
  REDLINE_TRY_ASSIGN(const double magnitude, rope.positive_or("attention_factor", usual));
  s.rope_magnitude = static_cast<float>(magnitude);
  return {};
}

/// `config`: the whole document; `rope`: its object about rotations.
result<void> read_scaling(const json_object& config, const known_class& of, const json_object& rope, model_config& c) {
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";  // the newer name and the older one
  REDLINE_TRY_ASSIGN(const std::string type, rope.text(key));
  if (type == "default") return {};
  if (type == "proportional" && of.kind.varies_layers) {
    REDLINE_TRY_ASSIGN(c.rotated_share, rope.positive("partial_rotary_factor"));
    if (c.rotated_share <= 1) return {};
    return rope.malformed("partial_rotary_factor", "expected at most 1, found " + std::to_string(c.rotated_share));
  }
  if (type == "linear") {
    REDLINE_TRY_ASSIGN(c.linear_factor, rope.positive("factor"));
    return {};
  }
  if (type == "llama3") {
    REDLINE_TRY_ASSIGN(c.llama3.emplace(), read_llama3(rope));
    return {};
  }
  if (type == "yarn") {
    REDLINE_TRY_ASSIGN(c.yarn.emplace(), read_yarn(rope, c.shape));
    return {};
  }
  if (of.kind.may_have_long_rope && (type == "longrope" || type == "su")) return read_long_rope(config, rope, c);
  const std::string more = of.kind.may_have_long_rope ? ", 'longrope'" : "";
  return rope.unsupported(key,
                          "expected 'default', 'linear', 'llama3'" + more + " or 'yarn', found " + quote_bytes(type));
}

constexpr double gemma3_window_base = 10000;  // default of files without the key

/// Reads one object for each kind of layer, as in newer files of Gemma 3 and in Mellum's.
result<void> read_both_ropes(const json_object& config, const known_class& of, const json_object& both,
                             model_config& c) {
  REDLINE_TRY_ASSIGN(const json_object full, both.object("full_attention"));
  REDLINE_TRY_ASSIGN(const json_object windowed, both.object("sliding_attention"));
  REDLINE_TRY(read_scaling(config, of, full, c));
  REDLINE_TRY_ASSIGN(const double base, full.positive("rope_theta"));
  const double usual = of.kind.unscaled_windows ? base : gemma3_window_base;
  REDLINE_TRY_ASSIGN(const double window_base, windowed.positive_or("rope_theta", usual));
  REDLINE_TRY_ASSIGN(const std::string type, windowed.text_or("rope_type", "default"));
  if (type != "default") return windowed.unsupported("rope_type", "expected 'default', found " + quote_bytes(type));
  c.shape.rope_base = static_cast<float>(base);
  if (window_base != usual) c.shape.window_rope_base = static_cast<float>(window_base);
  return {};
}

/// Reads the part of a head that is rotated, which newer files have in "rope_parameters".
result<void> read_rotated_part(const json_object& config, const known_class& of, model_shape& s) {
  json_object where = config;
  if (config.has("rope_parameters")) {
    REDLINE_TRY_ASSIGN(const json_object rope, config.object("rope_parameters"));
    if (rope.has("partial_rotary_factor")) where = rope;
  }
  REDLINE_TRY_ASSIGN(const double part,
                     where.positive_or("partial_rotary_factor", of.kind.hub_rotated == 0 ? 1 : of.kind.hub_rotated));
  if (part == 1) return {};
  if (of.kind.hub_rotated == 0) {
    return where.unsupported("partial_rotary_factor", "expected 1, found " + std::to_string(part));
  }
  const double dimensions = part * s.head_dim;
  if (part > 1 || std::fmod(std::floor(dimensions), 2) != 0 || dimensions < 2) {
    return where.malformed("partial_rotary_factor", "expected a share of " + std::to_string(s.head_dim) +
                                                        " dimensions that is a whole number of pairs, found " +
                                                        std::to_string(part));
  }
  s.rotary_dim = static_cast<std::uint32_t>(dimensions);
  return {};
}

/// Newer files have everything in "rope_parameters", older ones the base outside and the rest in "rope_scaling".
result<void> read_rope(const json_object& config, const known_class& of, model_config& c) {
  REDLINE_TRY(read_rotated_part(config, of, c.shape));
  const std::string_view key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const bool gemma3 = of.kind.window_rope_base != 0;  // layers with a window rotate by their own base
  double base = 10000;
  if (gemma3) {
    base = 1e6;
    REDLINE_TRY_ASSIGN(const double window_base, config.positive_or("rope_local_base_freq", gemma3_window_base));
    if (window_base != gemma3_window_base) c.shape.window_rope_base = static_cast<float>(window_base);
  }
  if (config.has(key)) {
    REDLINE_TRY_ASSIGN(const json_object rope, config.object(key));
    if ((gemma3 || of.kind.unscaled_windows) && rope.has("full_attention")) {
      return read_both_ropes(config, of, rope, c);
    }
    REDLINE_TRY(read_scaling(config, of, rope, c));
    const bool inside = key == "rope_parameters" && !config.has("rope_theta");
    REDLINE_TRY_ASSIGN(base, inside ? rope.positive("rope_theta") : config.positive_or("rope_theta", base));
  } else {
    REDLINE_TRY_ASSIGN(base, config.positive_or("rope_theta", base));
  }
  c.shape.rope_base = static_cast<float>(base);
  return {};
}

/// Refuses layer types that differ from the period; 0 means no layer has a window, 1 means all have one.
result<void> check_layer_types(const json_object& config, std::uint32_t period, std::uint32_t layers) {
  if (!config.has("layer_types")) return {};
  REDLINE_TRY_ASSIGN(const json* types, config.array("layer_types"));
  if (types->size() != layers) return wrong_types(config, layers, types->size());
  for (std::uint32_t i = 0; i < layers; ++i) {
    const bool has_window = period == 1 || (period > 1 && i % period + 1 < period);
    const std::string wanted = has_window ? "sliding_attention" : "full_attention";
    if ((*types)[i] != wanted) {
      return config.unsupported("layer_types", "expected '" + wanted + "' in layer " + std::to_string(i) + ", found " +
                                                   show_json((*types)[i]));
    }
  }
  return {};
}

/// Reads the window as a key. In families whose files cannot say which layers have a window, it limits the context
/// instead: up to the window's length, attention to the last tokens is attention to all.
result<void> read_window(const json_object& config, const known_class& of, model_shape& s) {
  REDLINE_TRY_ASSIGN(const bool used, config.flag_or("use_sliding_window", of.kind.window_unless_denied));
  std::uint32_t window = 0;
  if (used && config.has("sliding_window")) {
    REDLINE_TRY_ASSIGN(window, size_at(config, "sliding_window"));
  }
  // 1 means that all layers have one.
  const std::uint32_t usual = !of.named.has_windows ? 0 : std::max(1U, of.kind.window_period.value_or(0));
  std::uint32_t period = window == 0 ? 0 : usual;
  if (usual == 0) {
    if (window != 0) s.context = std::min(s.context, window);
  } else if (usual > 1) {
    if (window == 0) return config.malformed("sliding_window", "expected a number of tokens");
    s.window = window;
    for (const char* name : {"sliding_window_pattern", "_sliding_window_pattern"}) {
      if (of.kind.window_rope_base != 0 && config.has(name)) {
        REDLINE_TRY_ASSIGN(period, size_at(config, name));
      }
    }
    if (period != usual) s.window_period = period;
    if (period == 1) return config.unsupported("sliding_window_pattern", "expected more than 1");
  } else if (window < s.context) {
    s.window = window;
  }
  if (s.has_states() || s.varied) return {};
  const bool all_or_none = usual < 2;
  // Families whose layers all have a window state the type of every layer or of none.
  return check_layer_types(config, all_or_none && s.window == 0 ? 0 : period, s.layers);
}

std::string_view activation_name(feed_forward_kind kind) {
  const bool is_silu = kind == feed_forward_kind::gated_silu || kind == feed_forward_kind::clamped_swiglu;
  return is_silu ? "silu" : "gelu_pytorch_tanh";
}

result<void> refuse_extras(const json_object& config, const known_class& of) {
  // Gemma's first files say "gelu" but mean its tanh approximation, as the newer key says.
  const std::string_view key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  const family& kind = of.kind;
  const std::string_view wanted = activation_name(kind.activation);
  REDLINE_TRY_ASSIGN(const std::string activation, config.text_or(key, std::string(wanted)));
  const bool old_name = kind.activation == feed_forward_kind::gated_gelu && activation == "gelu";
  if (activation != wanted && !old_name) {
    return config.unsupported(key, "expected " + quote_bytes(wanted) + ", found " + quote_bytes(activation));
  }
  if (kind.activation == feed_forward_kind::clamped_swiglu) {
    REDLINE_TRY_ASSIGN(const double limit, config.positive_or("swiglu_limit", 7));
    if (limit != 7) return config.unsupported("swiglu_limit", "expected 7, found " + std::to_string(limit));
    if (!config.has("quantization_config")) return {};
    REDLINE_TRY_ASSIGN(const json_object quantised, config.object("quantization_config"));
    REDLINE_TRY_ASSIGN(const std::string method, quantised.text("quant_method"));
    if (method == "mxfp4") return {};
    return quantised.unsupported("quant_method", "expected 'mxfp4', found " + quote_bytes(method));
  }
  if (config.has("quantization_config")) {
    return config.unsupported("quantization_config", "expected weights that are not quantized");
  }
  return {};
}

/// Whether the class is a model of several parts.
bool is_wrapper(const json_object& config) {
  const json* names = config.find("architectures");
  const bool is_one = names != nullptr && names->is_array() && names->size() == 1 && names->front().is_string();
  return is_one &&
         std::ranges::find(wrappers, names->front().get_ref<const std::string&>(), &wrapper::theirs) != wrappers.end();
}

result<wrapper> read_wrapper(const json_object& config, const json_object& part) {
  REDLINE_TRY_ASSIGN(const std::string type, part.text("model_type"));
  const auto& name = config.find("architectures")->front().get_ref<const std::string&>();
  std::string expected;
  for (const wrapper& w : wrappers) {
    if (w.theirs != name) continue;
    if (w.text_type == type) return w;
    expected += (expected.empty() ? "" : " or ") + quote_bytes(w.text_type);
  }
  return part.unsupported("model_type", "expected " + expected + ", found " + quote_bytes(type));
}

/// The members of the text part as if it stood alone. Files of a wrapper may leave out defaults.
result<json> unwrap(const json_object& config) {
  REDLINE_TRY_ASSIGN(const json_object part, config.object("text_config"));
  REDLINE_TRY_ASSIGN(const wrapper of, read_wrapper(config, part));
  if (config.has("quantization_config")) {
    return config.unsupported("quantization_config", "expected weights that are not quantized");
  }
  json whole = json::parse(of.usual);
  if (const json* tied = config.find("tie_word_embeddings")) whole["tie_word_embeddings"] = *tied;
  for (const auto& [name, value] : part.value().items()) {
    if (!value.is_null()) whole[name] = value;
  }
  whole["architectures"] = json::array({of.text});
  return whole;
}

result<model_config> read_alone(const json_object& config) {
  model_config c;
  REDLINE_TRY_ASSIGN(const known_class of, read_class(config));
  c.shape.kind = &of.kind;
  REDLINE_TRY(read_sizes(config, of, c.shape));
  REDLINE_TRY(read_rope(config, of, c));
  REDLINE_TRY(read_window(config, of, c.shape));
  REDLINE_TRY(refuse_extras(config, of));
  return c;
}

}  // namespace

result<model_config> read_model_config(const json_object& config) {
  if (!is_wrapper(config)) return read_alone(config);
  REDLINE_TRY_ASSIGN(const json text, unwrap(config));
  REDLINE_TRY_ASSIGN(const json_object object, json_object::of(text, config.file(), "text_config"));
  REDLINE_TRY_ASSIGN(model_config c, read_alone(object));
  c.is_wrapped = true;
  return c;
}

std::optional<std::string> text_name(std::string_view tensor) {
  for (const std::string_view other :
       {"vision_tower.", "multi_modal_projector.", "visual.", "embed_vision.", "audio_tower.", "embed_audio."}) {
    if (tensor.starts_with(other) || tensor.starts_with("model." + std::string(other))) return std::nullopt;
  }
  // The prefix in folders, and the one in newer folders that were saved again.
  for (const std::string_view before : {"language_model.", "model.language_model."}) {
    if (!tensor.starts_with(before)) continue;
    const std::string_view rest = tensor.substr(before.size());
    const bool is_whole = rest.starts_with("model.") || rest.starts_with("lm_head.");
    return (is_whole ? "" : "model.") + std::string(rest);
  }
  return std::string(tensor);
}

std::vector<float> rope_divisors(const model_config& config) {
  std::vector<float> divisors;
  if (config.shape.varied) {  // whose files have the divisors even if all pairs turn
    const std::uint32_t pairs = config.shape.head_dim / 2;
    divisors.assign(pairs, 1e30F);  // these pairs do not turn
    std::fill_n(divisors.begin(), static_cast<std::uint32_t>(config.rotated_share * pairs), 1.0F);
  }
  if (!config.llama3) return divisors;
  const llama3_scaling& s = *config.llama3;
  for (std::uint32_t i = 0; i < config.shape.head_dim / 2; ++i) {
    const double frequency = std::pow(static_cast<double>(config.shape.rope_base), -2.0 * i / config.shape.head_dim);
    // The number of turns within the original context decides: from `high` on a pair keeps its speed, up to `low` it
    // gets the full factor.
    const double turns = s.original_context * frequency / (2 * std::numbers::pi);
    const double kept =
        std::clamp((turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / s.factor + kept)));
  }
  return divisors;
}

}  // namespace redline::huggingface
