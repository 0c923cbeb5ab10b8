#include "runtime/huggingface/model_config.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "runtime/base/hex.hpp"

namespace redline::huggingface {
namespace {

struct architecture {
  std::string_view theirs;
  std::string_view ours;
  bool window_unless_denied;  // "sliding_window" counts where nothing says whether it is used
  std::string_view epsilon = "rms_norm_eps";
  std::string_view activation = "silu";
  bool tied_unless_denied = false;
  // Of mixtures of experts: the key of their number, and whether the weights of a token's experts sum to one.
  std::string_view experts = {};
  bool normalises_experts = false;
};
constexpr auto architectures = std::to_array<architecture>({
    {"LlamaForCausalLM", "llama", true},
    {"MistralForCausalLM", "llama", true},
    {"Qwen2ForCausalLM", "qwen2", false},
    {"Qwen3ForCausalLM", "qwen3", false},
    {"GemmaForCausalLM", "gemma", false, "rms_norm_eps", "gelu_pytorch_tanh", true},
    {.theirs = "MixtralForCausalLM",
     .ours = "llama",
     .window_unless_denied = true,
     .experts = "num_local_experts",
     .normalises_experts = true},
    {.theirs = "Qwen2MoeForCausalLM", .ours = "qwen2moe", .window_unless_denied = false, .experts = "num_experts"},
    {.theirs = "Qwen3MoeForCausalLM",
     .ours = "qwen3moe",
     .window_unless_denied = false,
     .experts = "num_experts",
     .normalises_experts = true},
    {.theirs = "GraniteForCausalLM", .ours = "granite", .window_unless_denied = false},
    {.theirs = "GraniteMoeForCausalLM",
     .ours = "granitemoe",
     .window_unless_denied = false,
     .experts = "num_local_experts",
     .normalises_experts = true},
    {"Starcoder2ForCausalLM", "starcoder2", true, "norm_epsilon", "gelu_pytorch_tanh", true},
});

constexpr std::uint64_t size_max = 0x7fffffff;  // fits every integer; `check` knows the bounds that count

std::string known_architectures() {
  std::string names;
  for (const architecture& a : architectures) names += (names.empty() ? "" : ", ") + std::string(a.theirs);
  return names;
}

result<architecture> read_architecture(const json_object& config) {
  REDLINE_TRY_ASSIGN(const json* names, config.array("architectures"));
  if (names->size() == 1 && names->front().is_string()) {
    const auto& name = names->front().get_ref<const std::string&>();
    const auto it = std::find_if(architectures.begin(), architectures.end(),
                                 [&](const architecture& a) { return a.theirs == name; });
    if (it != architectures.end()) return *it;
  }
  return config.unsupported("architectures", "expected one of " + known_architectures() + ", found " +
                                                 (names->size() == 1 ? show_json(names->front()) : show_json(*names)));
}

result<std::uint32_t> size_at(const json_object& config, std::string_view name) {
  REDLINE_TRY_ASSIGN(const std::uint64_t size, config.whole(name, 1, size_max));
  return static_cast<std::uint32_t>(size);
}

result<std::uint32_t> size_or(const json_object& config, std::string_view name, std::uint32_t otherwise) {
  return config.has(name) ? size_at(config, name) : otherwise;
}

/// Every layer is a mixture, as none of the known files is otherwise.
result<void> read_experts(const json_object& config, const architecture& kind, gguf::decoder_shape& s) {
  if (kind.experts.empty()) return {};
  REDLINE_TRY_ASSIGN(s.experts, size_at(config, kind.experts));
  REDLINE_TRY_ASSIGN(s.experts_used, size_at(config, "num_experts_per_tok"));
  REDLINE_TRY_ASSIGN(s.expert_feed_forward, size_or(config, "moe_intermediate_size", s.feed_forward));
  if (kind.ours == "qwen2moe") {
    REDLINE_TRY_ASSIGN(s.shared_feed_forward, size_at(config, "shared_expert_intermediate_size"));
  }
  REDLINE_TRY_ASSIGN(const bool normalises, config.flag_or("norm_topk_prob", kind.normalises_experts));
  if (normalises != kind.normalises_experts) {
    return config.unsupported(
        "norm_topk_prob",
        std::string("expected ") + (kind.normalises_experts ? "true" : "false") + " in a " + std::string(kind.theirs));
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

result<void> read_multipliers(const json_object& config, gguf::decoder_shape& s) {
  if (!s.architecture.starts_with("granite")) return {};
  const auto read = [&](std::string_view name, float& into) -> result<void> {
    REDLINE_TRY_ASSIGN(const double multiplier, config.positive(name));
    into = static_cast<float>(multiplier);
    return {};
  };
  REDLINE_TRY(read("embedding_multiplier", s.embedding_scale));
  REDLINE_TRY(read("residual_multiplier", s.residual_scale));
  REDLINE_TRY(read("attention_multiplier", s.attention_scale));
  return read("logits_scaling", s.logit_divisor);
}

result<void> read_sizes(const json_object& config, const architecture& kind, gguf::decoder_shape& s) {
  REDLINE_TRY_ASSIGN(s.layers, size_at(config, "num_hidden_layers"));
  REDLINE_TRY_ASSIGN(s.width, size_at(config, "hidden_size"));
  REDLINE_TRY_ASSIGN(s.heads, size_at(config, "num_attention_heads"));
  REDLINE_TRY_ASSIGN(s.kv_heads, size_or(config, "num_key_value_heads", s.heads));
  REDLINE_TRY_ASSIGN(s.feed_forward, size_at(config, "intermediate_size"));
  REDLINE_TRY(read_experts(config, kind, s));
  REDLINE_TRY(read_multipliers(config, s));
  REDLINE_TRY_ASSIGN(s.vocabulary, size_at(config, "vocab_size"));
  REDLINE_TRY_ASSIGN(s.context, size_at(config, "max_position_embeddings"));
  if (!config.has("head_dim") && s.width % s.heads != 0) {
    return config.malformed("num_attention_heads", "expected a divisor of the width " + std::to_string(s.width) +
                                                       ", found " + std::to_string(s.heads));
  }
  REDLINE_TRY_ASSIGN(s.head_dim, size_or(config, "head_dim", std::max(1U, s.width / s.heads)));
  REDLINE_TRY_ASSIGN(const double epsilon, config.positive(kind.epsilon));
  s.norm_epsilon = static_cast<float>(epsilon);
  REDLINE_TRY_ASSIGN(s.tied_head, config.flag_or("tie_word_embeddings", kind.tied_unless_denied));
  const auto possible = check(s);
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

result<yarn_scaling> read_yarn(const json_object& rope, std::uint32_t context) {
  yarn_scaling s;
  REDLINE_TRY_ASSIGN(s.factor, rope.positive("factor"));
  REDLINE_TRY_ASSIGN(s.original_context, rope.positive_or("original_max_position_embeddings", context));
  REDLINE_TRY_ASSIGN(s.turns_kept, rope.positive_or("beta_fast", s.turns_kept));
  REDLINE_TRY_ASSIGN(s.turns_slowed, rope.positive_or("beta_slow", s.turns_slowed));
  if (rope.has("attention_factor")) {
    REDLINE_TRY_ASSIGN(s.attention_factor, rope.positive("attention_factor"));
  }
  if (s.factor < 1) return rope.malformed("factor", "expected at least 1, found " + std::to_string(s.factor));
  for (const char* name : {"mscale", "mscale_all_dim", "truncate"}) {
    if (rope.has(name)) return rope.unsupported(name, "expected YaRN without it");
  }
  return s;
}

result<void> read_scaling(const json_object& rope, model_config& c) {
  const std::string_view key = rope.has("rope_type") ? "rope_type" : "type";  // the newer and the older name
  REDLINE_TRY_ASSIGN(const std::string type, rope.text(key));
  if (type == "default") return {};
  if (type == "linear") {
    REDLINE_TRY_ASSIGN(c.linear_factor, rope.positive("factor"));
    return {};
  }
  if (type == "llama3") {
    REDLINE_TRY_ASSIGN(c.llama3.emplace(), read_llama3(rope));
    return {};
  }
  if (type == "yarn") {
    REDLINE_TRY_ASSIGN(c.yarn.emplace(), read_yarn(rope, c.shape.context));
    return {};
  }
  return rope.unsupported(key, "expected 'default', 'linear', 'llama3' or 'yarn', found " + quote_bytes(type));
}

/// Newer files keep everything in "rope_parameters", older ones the base outside and the rest in "rope_scaling".
result<void> read_rope(const json_object& config, model_config& c) {
  const std::string_view key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  double base = 10000;
  if (config.has(key)) {
    REDLINE_TRY_ASSIGN(const json_object rope, config.object(key));
    REDLINE_TRY(read_scaling(rope, c));
    const bool inside = key == "rope_parameters" && !config.has("rope_theta");
    REDLINE_TRY_ASSIGN(base, inside ? rope.positive("rope_theta") : config.positive_or("rope_theta", base));
  } else {
    REDLINE_TRY_ASSIGN(base, config.positive_or("rope_theta", base));
  }
  c.shape.rope_base = static_cast<float>(base);
  REDLINE_TRY_ASSIGN(const double rotated, config.positive_or("partial_rotary_factor", 1));
  if (rotated != 1) {
    return config.unsupported("partial_rotary_factor", "expected 1, found " + std::to_string(rotated));
  }
  return {};
}

/// Attention to a window of the last tokens is attention to all of them as long as there are no more: the context ends
/// where it would begin to differ.
result<void> end_context_at_window(const json_object& config, const architecture& kind, std::uint32_t& context) {
  REDLINE_TRY_ASSIGN(const bool used, config.flag_or("use_sliding_window", kind.window_unless_denied));
  if (used && config.has("sliding_window")) {
    REDLINE_TRY_ASSIGN(const std::uint64_t window, config.whole("sliding_window", 1, size_max));
    context = std::min(context, static_cast<std::uint32_t>(window));
  }
  if (!config.has("layer_types")) return {};
  REDLINE_TRY_ASSIGN(const json* types, config.array("layer_types"));
  for (const json& type : *types) {
    if (type != "full_attention") {
      return config.unsupported("layer_types", "expected 'full_attention' everywhere, found " + show_json(type));
    }
  }
  return {};
}

result<void> refuse_extras(const json_object& config, const architecture& kind) {
  // Gemma's first files say "gelu" and mean, as the newer key says, its approximation by tanh.
  const std::string_view key = config.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  REDLINE_TRY_ASSIGN(const std::string activation, config.text_or(key, std::string(kind.activation)));
  const bool old_name = kind.ours == "gemma" && activation == "gelu";
  if (activation != kind.activation && !old_name) {
    return config.unsupported(key, "expected " + quote_bytes(kind.activation) + ", found " + quote_bytes(activation));
  }
  if (config.has("quantization_config")) {
    return config.unsupported("quantization_config", "expected weights that are not quantised yet");
  }
  return {};
}

}  // namespace

result<model_config> read_model_config(const json_object& config) {
  model_config c;
  REDLINE_TRY_ASSIGN(const architecture kind, read_architecture(config));
  c.shape.architecture = kind.ours;
  REDLINE_TRY(read_sizes(config, kind, c.shape));
  REDLINE_TRY(read_rope(config, c));
  REDLINE_TRY(end_context_at_window(config, kind, c.shape.context));
  REDLINE_TRY(refuse_extras(config, kind));
  return c;
}

std::vector<float> rope_divisors(const model_config& config) {
  std::vector<float> divisors;
  if (!config.llama3) return divisors;
  const llama3_scaling& s = *config.llama3;
  for (std::uint32_t i = 0; i < config.shape.head_dim / 2; ++i) {
    const double frequency = std::pow(static_cast<double>(config.shape.rope_base), -2.0 * i / config.shape.head_dim);
    // How often the pair turns within the original context decides: from `high` on it keeps its speed, up to `low` it
    // gets all of the factor.
    const double turns = s.original_context * frequency / (2 * std::numbers::pi);
    const double kept =
        std::clamp((turns - s.low_frequency_factor) / (s.high_frequency_factor - s.low_frequency_factor), 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / ((1 - kept) / s.factor + kept)));
  }
  return divisors;
}

}  // namespace redline::huggingface
