#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/dispatch.hpp"
#include "kernels/grid_blocks.hpp"
#include "kernels/weight_blocks.hpp"
#include "runtime/gguf/gguf_file.hpp"
#include "runtime/gguf/gguf_writer.hpp"

// A decoder of a few thousand random weights with a byte-level tokenizer, as GGUF bytes: exact, fast, and for one seed
// the same on every machine. It is header-only; users link redline::gguf and redline::kernels.

namespace redline::test {

struct tiny_shape {
  std::string architecture = "llama";  // or "qwen2", "qwen3", "gemma", "starcoder2", "qwen2moe", "qwen3moe", "granite",
                                       // "granitemoe", "gemma2", "gemma3", "gpt-oss", "phi3", "olmo2", "glm4",
                                       // "command-r" (with norms of heads), "deepseek2", "mellum", "mistral3",
                                       // "qwen35", "qwen35moe", "qwen3next", "lfm2", "lfm2moe", "gemma4"
  std::uint32_t layers = 2;
  std::uint32_t width = 64;  // rows are whole blocks of the matrices' type; so are heads * head_dim and feed_forward
  std::uint32_t heads = 4;
  std::uint32_t kv_heads = 2;
  std::uint32_t head_dim = 16;
  std::uint32_t rotary_dim = 16;
  std::uint32_t feed_forward = 96;
  std::uint32_t context = 2048;
  gguf::tensor_type matrices = gguf::tensor_type::f32;
  bool tied_head = true;
  std::uint64_t seed = 1;
  // A mixture of experts, if `experts` is not 0.
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 2;
  std::uint32_t expert_feed_forward = 32;
  std::uint32_t shared_feed_forward = 0;
  std::optional<gguf::tensor_type> expert_matrices = std::nullopt;  // the type of `matrices` unless set
  std::uint32_t window = 20;  // of the even layers in gemma2, gemma3, gemma4, gpt-oss
  // deepseek2: a token's vector has `width` numbers; in addition to the rotated ones, a head's own query and key have
  // half as many, and its value a quarter.
  std::uint32_t query_rank = 0;
  bool one_latent_matrix = false;  // as in older files: keys and values of all heads are in one tensor
  std::uint32_t dense_layers = 0;
  // In qwen35, qwen35moe, qwen3next, lfm2 and lfm2moe even layers have a state; in the first three with two heads of
  // keys and four of values.
  std::uint32_t delta_head_dim = 32;
  bool mtp = false;  // these have one more layer, which drafts
  // gemma4: layers with a window have heads of half the size and a KV head for each; the last layers share keys and
  // values and are twice as wide; a token has so many numbers for each layer; others use keys as values.
  std::uint32_t sharing_layers = 0;
  std::uint32_t layer_input = 0;
  bool keys_are_values = false;
  bool by_sigmoid = false;  // experts are chosen as in DeepSeek 3, in two groups if their number is even
};

struct tiny_tensor {
  std::string name;
  gguf::tensor_type type;
  std::vector<std::uint64_t> dimensions;  // innermost first
  std::vector<std::byte> payload;
};

/// splitmix64, which gives the same numbers everywhere, unlike the standard distributions.
class tiny_random {
 public:
  explicit tiny_random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number in [0, n).
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>((bits() >> 32) * n >> 32); }
  /// A number in [-1, 1).
  float uniform() { return static_cast<float>(static_cast<std::int64_t>(bits() >> 40) - (1 << 23)) * 0x1p-23F; }

 private:
  std::uint64_t state_;
};

/// Random blocks of a read-only type, with weights of the size of `values`.
inline std::vector<std::byte> tiny_blocks(kernels::weight_type type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(kernels::row_bytes(type, values.size()));
  tiny_random random(values.size());
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.bits() & 255);
  const auto scale_all = [&](float d) {
    for (std::size_t at = 0; at < bytes.size(); at += kernels::block_bytes(type)) {
      kernels::put_grid_scale(type, d, bytes.data() + at);
    }
  };
  const auto squares = [](const std::vector<float>& x) {
    double sum = 0;
    for (const float v : x) sum += double{v} * v;
    return sum;
  };
  scale_all(1);
  std::vector<float> of_one(values.size());
  kernels::dequantize_row(type, bytes.data(), of_one.size(), of_one.data());
  scale_all(static_cast<float>(std::sqrt(squares(values) / squares(of_one))));
  return bytes;
}

/// The bytes of `values` in a tensor type that kernels can write, or of similar numbers in a read-only type; they fill
/// whole blocks.
inline std::vector<std::byte> tiny_encode(gguf::tensor_type type, const std::vector<float>& values) {
  for (const kernels::weight_type known : kernels::all_weight_types) {
    if (gguf::name_of(type) != kernels::name_of(known)) continue;
    if (!kernels::is_written(known)) return tiny_blocks(known, values);
    std::vector<std::byte> bytes(kernels::row_bytes(known, values.size()));
    kernels::quantize_row(known, values.data(), values.size(), bytes.data());
    return bytes;
  }
  throw std::invalid_argument("tiny_encode: " + gguf::name_of(type));
}

/// Whether rows with this many numbers are whole blocks of the type.
inline bool tiny_fits(gguf::tensor_type type, std::uint32_t columns) {
  return std::ranges::any_of(kernels::all_weight_types, [&](auto known) {
    return gguf::name_of(type) == kernels::name_of(known) && columns % kernels::block_columns(known) == 0;
  });
}

/// GPT-2's character for a byte, in UTF-8.
inline std::string tiny_byte_character(int byte) {
  const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  int code = byte;
  if (!printable) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? 0 : 1;
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

/// A whole model; tests may change metadata and tensors before they ask for the file.
struct tiny_model {
  using entry =
      std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>, std::vector<std::int32_t>>;
  std::map<std::string, entry> metadata;
  std::vector<tiny_tensor> tensors;

  static constexpr std::uint32_t vocabulary = 300;
  static constexpr std::int32_t end_of_text = 292;  // then <|im_start|>, <|im_end|>, <|fim_prefix|>, ...

  [[nodiscard]] tiny_tensor& tensor(const std::string& name) {
    const auto it = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
    if (it == tensors.end()) throw std::invalid_argument("tiny_model has no tensor " + name);
    return *it;
  }

  [[nodiscard]] gguf::gguf_writer writer() const {
    gguf::gguf_writer out;
    for (const auto& [key, any] : metadata) {
      if (const auto* number = std::get_if<std::uint32_t>(&any)) out.put_u32(key, *number);
      if (const auto* real = std::get_if<float>(&any)) out.put_f32(key, *real);
      if (const auto* flag = std::get_if<bool>(&any)) out.put_bool(key, *flag);
      if (const auto* text = std::get_if<std::string>(&any)) out.put_string(key, *text);
      if (const auto* texts = std::get_if<std::vector<std::string>>(&any)) out.put_strings(key, *texts);
      if (const auto* numbers = std::get_if<std::vector<std::int32_t>>(&any)) out.put_i32s(key, *numbers);
    }
    for (const tiny_tensor& t : tensors) out.add_tensor(t.name, t.type, t.dimensions, t.payload);
    return out;
  }
  [[nodiscard]] std::vector<std::byte> bytes() const { return writer().bytes(); }
  [[nodiscard]] std::shared_ptr<const gguf::gguf_file> file() const {
    auto opened = gguf::gguf_file::from_bytes(bytes(), "tiny.gguf");
    if (!opened) throw std::runtime_error(opened.error().describe());
    return *opened;
  }
};

/// 256 byte tokens, 36 two-letter merges, 8 control tokens: 300, which is not a multiple of a vector.
inline void add_tiny_tokenizer(tiny_model& m) {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
  std::vector<std::string> merges;
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(tiny_byte_character(byte));
  const std::string pairs =
      "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri";
  for (std::size_t i = 0; i < pairs.size(); i += 3) {
    tokens.push_back(pairs.substr(i, 2));
    merges.push_back({pairs[i], ' ', pairs[i + 1]});
  }
  types.assign(tokens.size(), 1);
  for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>",
                              "<|fim_suffix|>", "<|fim_pad|>", "<|file_sep|>"}) {
    tokens.emplace_back(special);
    types.push_back(3);
  }
  m.metadata["tokenizer.ggml.model"] = std::string("gpt2");
  m.metadata["tokenizer.ggml.pre"] = std::string("qwen2");
  m.metadata["tokenizer.ggml.tokens"] = tokens;
  m.metadata["tokenizer.ggml.token_type"] = types;
  m.metadata["tokenizer.ggml.merges"] = merges;
  m.metadata["tokenizer.ggml.eos_token_id"] = std::uint32_t{tiny_model::end_of_text + 2};
  m.metadata["tokenizer.ggml.padding_token_id"] = std::uint32_t{tiny_model::end_of_text};
  m.metadata["tokenizer.ggml.add_bos_token"] = false;
  m.metadata["tokenizer.chat_template"] = std::string(
      "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
      "'\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}");
}

/// Adds "</", "<copy", "<gen" and "=\"", as in vocabularies made from programs. They are for the tokenizer only: the
/// matrices have no rows for them.
inline void add_program_tokens(tiny_model& m) {
  auto& tokens = std::get<std::vector<std::string>>(m.metadata["tokenizer.ggml.tokens"]);
  auto& types = std::get<std::vector<std::int32_t>>(m.metadata["tokenizer.ggml.token_type"]);
  auto& merges = std::get<std::vector<std::string>>(m.metadata["tokenizer.ggml.merges"]);
  for (std::string merge : {"< /", "= \"", "co p", "cop y", "< copy", "g en", "< gen"}) {
    merges.push_back(merge);
    tokens.push_back(merge.erase(merge.find(' '), 1));
    types.push_back(1);
  }
}

inline tiny_model make_tiny_model(const tiny_shape& s = {}) {
  tiny_model m;
  const std::string a = s.architecture + ".";
  m.metadata["general.architecture"] = s.architecture;
  m.metadata["general.name"] = std::string("tiny ") + s.architecture;
  m.metadata[a + "block_count"] = s.layers + (s.mtp ? 1 : 0);
  if (s.mtp) m.metadata[a + "nextn_predict_layers"] = 1U;
  m.metadata[a + "embedding_length"] = s.width;
  m.metadata[a + "attention.head_count"] = s.heads;
  m.metadata[a + "attention.head_count_kv"] = s.kv_heads;
  m.metadata[a + "attention.key_length"] = s.head_dim;
  m.metadata[a + "attention.value_length"] = s.head_dim;
  const bool deepseek = s.architecture == "deepseek2";
  const std::uint32_t rank = s.width, plain = s.width / 2, value = s.width / 4;
  if (deepseek) {
    const std::string suffix = s.one_latent_matrix ? "" : "_mla";
    m.metadata[a + "attention.head_count_kv"] = s.one_latent_matrix ? s.heads : 1;
    m.metadata[a + "attention.key_length"] = rank + s.rotary_dim;
    m.metadata[a + "attention.value_length"] = rank;
    m.metadata[a + "attention.key_length" + suffix] = plain + s.rotary_dim;
    m.metadata[a + "attention.value_length" + suffix] = value;
    m.metadata[a + "attention.kv_lora_rank"] = rank;
    if (s.query_rank != 0) m.metadata[a + "attention.q_lora_rank"] = s.query_rank;
    m.metadata[a + "leading_dense_block_count"] = s.dense_layers;
    m.metadata[a + "expert_weights_scale"] = 1.5F;
    if (s.by_sigmoid) {
      m.metadata[a + "expert_gating_func"] = 2U;
      m.metadata[a + "expert_weights_norm"] = true;
      m.metadata[a + "expert_group_count"] = s.experts % 2 == 0 ? 2U : 1U;
      m.metadata[a + "expert_group_used_count"] = 1U;
    }
  }
  const bool starcoder = s.architecture == "starcoder2";
  const bool command_r = s.architecture == "command-r";
  if (command_r) m.metadata[a + "logit_scale"] = 0.25F;
  m.metadata[a + (starcoder || command_r ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon")] =
      1e-5F;
  m.metadata[a + "feed_forward_length"] = s.feed_forward;
  if (s.experts != 0) {
    m.metadata[a + "expert_count"] = s.experts;
    m.metadata[a + "expert_used_count"] = s.experts_used;
    m.metadata[a + "expert_feed_forward_length"] = s.expert_feed_forward;
    if (deepseek) {
      m.metadata[a + "expert_shared_count"] = s.shared_feed_forward / s.expert_feed_forward;
    } else if (s.shared_feed_forward != 0) {
      m.metadata[a + "expert_shared_feed_forward_length"] = s.shared_feed_forward;
    }
  }
  if (s.architecture.starts_with("granite")) {
    m.metadata[a + "embedding_scale"] = 12.0F;
    m.metadata[a + "residual_scale"] = 0.22F;
    m.metadata[a + "attention.scale"] = 0.0625F;
    m.metadata[a + "logit_scale"] = 8.0F;
  }
  const bool gpt_oss = s.architecture == "gpt-oss", gemma3 = s.architecture == "gemma3";
  const bool has_post_norms =
      s.architecture == "gemma2" || gemma3 || s.architecture == "olmo2" || s.architecture == "glm4";
  if (gpt_oss || s.architecture == "gemma2" || gemma3 || s.architecture == "mellum")
    m.metadata[a + "attention.sliding_window"] = s.window;
  if (s.architecture == "mistral3") {
    m.metadata[a + "rope.scaling.type"] = std::string("yarn");
    m.metadata[a + "rope.scaling.factor"] = 4.0F;
    m.metadata[a + "rope.scaling.original_context_length"] = 4U;
    m.metadata[a + "rope.scaling.yarn_log_multiplier"] = 1.0F;
    m.metadata[a + "attention.temperature_scale"] = 0.5F;
  }
  if (s.architecture == "gemma2") {
    m.metadata[a + "attn_logit_softcapping"] = 5.0F;
    m.metadata[a + "final_logit_softcapping"] = 20.0F;
  }
  if (gemma3) m.metadata[a + "attention.sliding_window_pattern"] = 2U;
  m.metadata[a + "context_length"] = s.context;
  m.metadata[a + "rope.dimension_count"] = s.rotary_dim;
  m.metadata[a + "rope.freq_base"] = gemma3 ? 1e6F : 10000.0F;
  const bool phi3 = s.architecture == "phi3", olmo2 = s.architecture == "olmo2", glm4 = s.architecture == "glm4";
  const bool fuses_gate = phi3 || glm4;
  if (phi3) {
    m.metadata[a + "rope.scaling.original_context_length"] = s.context / 8;
    m.metadata[a + "rope.scaling.attn_factor"] = 1.25F;
  }
  const bool qwen3next = s.architecture == "qwen3next";
  const bool qwen35 = s.architecture.starts_with("qwen35") || qwen3next;
  const std::uint32_t delta_keys = 2 * s.delta_head_dim, delta_values = 4 * s.delta_head_dim;
  if (qwen35) {
    m.metadata[a + "ssm.conv_kernel"] = 4U;
    m.metadata[a + "ssm.state_size"] = s.delta_head_dim;
    m.metadata[a + "ssm.group_count"] = 2U;
    m.metadata[a + "ssm.time_step_rank"] = 4U;
    m.metadata[a + "ssm.inner_size"] = delta_values;
    m.metadata[a + "full_attention_interval"] = 2U;
  }
  const bool lfm2 = s.architecture.starts_with("lfm2"), lfm2moe = s.architecture == "lfm2moe";
  if (lfm2) {
    std::vector<std::int32_t> kv_heads(s.layers);
    for (std::uint32_t i = 1; i < s.layers; i += 2) kv_heads[i] = static_cast<std::int32_t>(s.kv_heads);
    m.metadata[a + "attention.head_count_kv"] = kv_heads;
    m.metadata[a + "shortconv.l_cache"] = 3U;
  }
  const bool gemma4 = s.architecture == "gemma4";
  const auto shares = [&](std::uint32_t layer) { return gemma4 && layer + s.sharing_layers >= s.layers; };
  if (gemma4) {
    std::vector<std::int32_t> kv_heads, hidden, windows;
    for (std::uint32_t i = 0; i < s.layers; ++i) {
      kv_heads.push_back(static_cast<std::int32_t>(i % 2 == 0 ? s.heads : s.kv_heads));
      hidden.push_back(static_cast<std::int32_t>(shares(i) ? 2 * s.feed_forward : s.feed_forward));
      windows.push_back(i % 2 == 0 ? 1 : 0);
    }
    m.metadata[a + "attention.head_count_kv"] = kv_heads;
    m.metadata[a + "feed_forward_length"] = hidden;
    m.metadata[a + "attention.sliding_window_pattern"] = windows;
    m.metadata[a + "attention.sliding_window"] = s.window;
    m.metadata[a + "attention.key_length_swa"] = s.head_dim / 2;
    m.metadata[a + "attention.value_length_swa"] = s.head_dim / 2;
    m.metadata[a + "rope.dimension_count"] = s.head_dim;
    m.metadata[a + "rope.dimension_count_swa"] = s.head_dim / 2;
    m.metadata[a + "rope.freq_base"] = 1e6F;
    m.metadata[a + "attention.shared_kv_layers"] = s.sharing_layers;
    m.metadata[a + "embedding_length_per_layer_input"] = s.layer_input;
    m.metadata[a + "final_logit_softcapping"] = 20.0F;
  }
  if (lfm2moe) {
    m.metadata[a + "leading_dense_block_count"] = s.dense_layers;
    m.metadata[a + "expert_gating_func"] = 2U;
  }
  add_tiny_tokenizer(m);

  tiny_random random(s.seed);
  const auto add = [&](const std::string& name, gguf::tensor_type type, std::vector<std::uint64_t> dimensions,
                       float centre, float spread) {
    std::uint64_t count = 1;
    for (const std::uint64_t d : dimensions) count *= d;
    std::vector<float> values(count);
    for (float& v : values) v = centre + spread * random.uniform();
    m.tensors.push_back({name, type, std::move(dimensions), tiny_encode(type, values)});
  };
  // The spread keeps the size of activations from layer to layer, and attention neither flat nor one-hot.
  const auto matrix = [&](const std::string& name, std::uint32_t rows, std::uint32_t columns, float gain = 2) {
    add(name, s.matrices, {columns, rows}, 0, gain / std::sqrt(static_cast<float>(columns)));
  };
  const auto norm = [&](const std::string& name) {
    add(name + ".weight", gguf::tensor_type::f32, {s.width}, 1, 0.2F);
    if (starcoder) add(name + ".bias", gguf::tensor_type::f32, {s.width}, 0, 0.2F);
  };
  const auto bias = [&](const std::string& name, std::uint32_t length) {
    add(name, gguf::tensor_type::f32, {length}, 0, 0.5F);
  };
  const std::uint32_t q = s.heads * s.head_dim;
  const std::uint32_t kv = s.kv_heads * s.head_dim;
  matrix("token_embd.weight", tiny_model::vocabulary, s.width, 6);
  norm(lfm2 ? "token_embd_norm" : "output_norm");
  if (!s.tied_head) matrix("output.weight", tiny_model::vocabulary, s.width, 6);
  if (phi3) {
    add("rope_factors_long.weight", gguf::tensor_type::f32, {s.rotary_dim / 2}, 5, 3);
    add("rope_factors_short.weight", gguf::tensor_type::f32, {s.rotary_dim / 2}, 1.5F, 0.5F);
  }
  // Matrices whose rows may be less than a block get another type, as in real files.
  const auto narrow = [&](const std::string& name, std::uint32_t rows, std::uint32_t columns) {
    add(name, tiny_fits(s.matrices, columns) ? s.matrices : gguf::tensor_type::q8_0, {columns, rows}, 0,
        2 / std::sqrt(static_cast<float>(columns)));
  };
  const auto vector = [&](const std::string& name, std::uint32_t length) {
    add(name, gguf::tensor_type::f32, {length}, 1, 0.2F);
  };
  if (gemma4) {
    std::vector<float> divisors(s.head_dim / 2, 1e30F);
    std::fill_n(divisors.begin(), s.head_dim / 8, 1.0F);
    m.tensors.push_back(
        {"rope_freqs.weight", gguf::tensor_type::f32, {s.head_dim / 2}, tiny_encode(gguf::tensor_type::f32, divisors)});
    if (s.layer_input != 0) {
      narrow("per_layer_token_embd.weight", tiny_model::vocabulary, s.layers * s.layer_input);
      matrix("per_layer_model_proj.weight", s.layers * s.layer_input, s.width);
      vector("per_layer_proj_norm.weight", s.layer_input);
    }
  }
  for (std::uint32_t i = 0; i < s.layers + (s.mtp ? 1 : 0); ++i) {
    const std::string b = "blk." + std::to_string(i) + ".";
    if (i == s.layers) {
      matrix(b + "nextn.eh_proj.weight", s.width, 2 * s.width);
      for (const char* each : {"nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"}) norm(b + each);
    }
    if (!olmo2) norm(b + "attn_norm");
    if (gemma4) {
      const std::uint32_t head_dim = i % 2 == 0 ? s.head_dim / 2 : s.head_dim;
      const std::uint32_t keys = head_dim * (i % 2 == 0 ? s.heads : s.kv_heads);
      const std::uint32_t hidden = shares(i) ? 2 * s.feed_forward : s.feed_forward;
      matrix(b + "attn_q.weight", s.heads * head_dim, s.width);
      if (!shares(i)) matrix(b + "attn_k.weight", keys, s.width);
      if (!shares(i) && (i % 2 == 0 || !s.keys_are_values)) matrix(b + "attn_v.weight", keys, s.width);
      narrow(b + "attn_output.weight", s.width, s.heads * head_dim);
      vector(b + "attn_q_norm.weight", head_dim);
      if (!shares(i)) vector(b + "attn_k_norm.weight", head_dim);
      for (const char* each : {"post_attention_norm", "ffn_norm", "post_ffw_norm"}) norm(b + each);
      matrix(b + "ffn_gate.weight", hidden, s.width);
      matrix(b + "ffn_up.weight", hidden, s.width);
      narrow(b + "ffn_down.weight", s.width, hidden);
      if (s.experts != 0) {
        for (const char* each : {"post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"}) norm(b + each);
        vector(b + "ffn_gate_inp.scale", s.width);
        vector(b + "ffn_down_exps.scale", s.experts);
      }
      if (s.layer_input != 0) {
        matrix(b + "inp_gate.weight", s.layer_input, s.width);
        narrow(b + "proj.weight", s.width, s.layer_input);
        norm(b + "post_norm");
      }
      add(b + "layer_output_scale.weight", gguf::tensor_type::f32, {1}, 0.9F, 0.1F);
    }
    const bool has_state = (qwen35 || lfm2) && i % 2 == 0 && i < s.layers;
    if (has_state && lfm2) {
      matrix(b + "shortconv.in_proj.weight", 3 * s.width, s.width);
      add(b + "shortconv.conv.weight", gguf::tensor_type::f32, {3, s.width}, 0.3F, 0.5F);
      matrix(b + "shortconv.out_proj.weight", s.width, s.width);
    } else if (has_state) {
      matrix(b + "attn_qkv.weight", 2 * delta_keys + delta_values, s.width);
      matrix(b + "attn_gate.weight", delta_values, s.width);
      add(b + "ssm_conv1d.weight", gguf::tensor_type::f32, {4, 2 * delta_keys + delta_values}, 0.3F, 0.5F);
      if (qwen3next) {
        matrix(b + "ssm_ba.weight", 8, s.width);
      } else {
        matrix(b + "ssm_alpha.weight", 4, s.width);
        matrix(b + "ssm_beta.weight", 4, s.width);
      }
      bias(b + "ssm_dt.bias", 4);
      std::vector<float> decays(4);  // folders store the logarithms, which are whole 1024ths here
      for (float& x : decays) x = static_cast<float>(-std::exp(std::round(-1200 + 800.0 * random.uniform()) / 1024));
      m.tensors.push_back({b + "ssm_a", gguf::tensor_type::f32, {4}, tiny_encode(gguf::tensor_type::f32, decays)});
      add(b + "ssm_norm.weight", gguf::tensor_type::f32, {s.delta_head_dim}, 1, 0.2F);
      add(b + "ssm_out.weight", tiny_fits(s.matrices, delta_values) ? s.matrices : gguf::tensor_type::q8_0,
          {delta_values, s.width}, 0, 2 / std::sqrt(static_cast<float>(delta_values)));
    } else if (phi3) {
      matrix(b + "attn_qkv.weight", q + 2 * kv, s.width);
    } else if (deepseek) {
      const auto down_norm = [&](const std::string& name, std::uint32_t length) {
        add(b + name, gguf::tensor_type::f32, {length}, 1, 0.2F);
      };
      const std::uint32_t queries = s.heads * (plain + s.rotary_dim);
      if (s.query_rank == 0) {
        matrix(b + "attn_q.weight", queries, s.width);
      } else {
        matrix(b + "attn_q_a.weight", s.query_rank, s.width);
        down_norm("attn_q_a_norm.weight", s.query_rank);
        matrix(b + "attn_q_b.weight", queries, s.query_rank);
      }
      matrix(b + "attn_kv_a_mqa.weight", rank + s.rotary_dim, s.width);
      down_norm("attn_kv_a_norm.weight", rank);
      if (s.one_latent_matrix) {
        matrix(b + "attn_kv_b.weight", s.heads * (plain + value), rank);
      } else {
        // Rows of less than a block get another type, as in real files.
        const auto of_heads = [&](const std::string& name, std::uint32_t rows, std::uint32_t columns) {
          add(b + name, tiny_fits(s.matrices, columns) ? s.matrices : gguf::tensor_type::q8_0, {columns, rows, s.heads},
              0, 2 / std::sqrt(static_cast<float>(columns)));
        };
        of_heads("attn_k_b.weight", rank, plain);
        of_heads("attn_v_b.weight", value, rank);
      }
    } else if (!gemma4) {
      matrix(b + "attn_q.weight", qwen35 ? 2 * q : q, s.width);
      matrix(b + "attn_k.weight", kv, s.width);
      matrix(b + "attn_v.weight", kv, s.width);
    }
    if (s.architecture == "qwen2" || s.architecture == "qwen2moe" || starcoder || gpt_oss || glm4) {
      bias(b + "attn_q.bias", q);
      bias(b + "attn_k.bias", kv);
      bias(b + "attn_v.bias", kv);
    }
    if (s.architecture == "qwen3" || s.architecture == "qwen3moe" || s.architecture == "mellum" || gemma3 ||
        ((qwen35 || lfm2) && !has_state)) {
      add(b + "attn_q_norm.weight", gguf::tensor_type::f32, {s.head_dim}, 1, 0.2F);
      add(b + "attn_k_norm.weight", gguf::tensor_type::f32, {s.head_dim}, 1, 0.2F);
    }
    if (olmo2) {
      add(b + "attn_q_norm.weight", gguf::tensor_type::f32, {q}, 1, 0.2F);
      add(b + "attn_k_norm.weight", gguf::tensor_type::f32, {kv}, 1, 0.2F);
    }
    if (!has_state && !gemma4) matrix(b + "attn_output.weight", s.width, deepseek ? s.heads * value : q);
    if (command_r) {
      add(b + "attn_q_norm.weight", gguf::tensor_type::f32, {s.head_dim, s.heads}, 1, 0.2F);
      add(b + "attn_k_norm.weight", gguf::tensor_type::f32, {s.head_dim, s.kv_heads}, 1, 0.2F);
    }
    if (!olmo2 && !command_r && !gemma4) norm(b + (gpt_oss || qwen35 ? "post_attention_norm" : "ffn_norm"));
    if (has_post_norms) {
      norm(b + "post_attention_norm");
      norm(b + "post_ffw_norm");
    }
    if (gpt_oss) {
      bias(b + "attn_output.bias", s.width);
      add(b + "attn_sinks.weight", gguf::tensor_type::f32, {s.heads}, 0, 2);
      add(b + "ffn_gate_inp.bias", gguf::tensor_type::f32, {s.experts}, 0, 0.5F);
      add(b + "ffn_gate_exps.bias", gguf::tensor_type::f32, {s.expert_feed_forward, s.experts}, 0, 0.5F);
      add(b + "ffn_up_exps.bias", gguf::tensor_type::f32, {s.expert_feed_forward, s.experts}, 0, 0.5F);
      add(b + "ffn_down_exps.bias", gguf::tensor_type::f32, {s.width, s.experts}, 0, 0.5F);
    }
    if (s.experts != 0 && i >= s.dense_layers) {
      const auto experts = [&](const std::string& name, std::uint32_t rows, std::uint32_t columns) {
        const auto type = s.expert_matrices.value_or(s.matrices);
        add(name, type, {columns, rows, s.experts}, 0, 2 / std::sqrt(static_cast<float>(columns)));
      };
      add(b + "ffn_gate_inp.weight", gguf::tensor_type::f32, {s.width, s.experts}, 0,
          2 / std::sqrt(static_cast<float>(s.width)));
      if (s.by_sigmoid || lfm2moe) bias(b + "exp_probs_b.bias", s.experts);
      experts(b + "ffn_gate_exps.weight", s.expert_feed_forward, s.width);
      experts(b + "ffn_up_exps.weight", s.expert_feed_forward, s.width);
      experts(b + "ffn_down_exps.weight", s.width, s.expert_feed_forward);
      if (s.shared_feed_forward == 0) continue;
      if (!deepseek) {
        add(b + "ffn_gate_inp_shexp.weight", gguf::tensor_type::f32, {s.width}, 0,
            2 / std::sqrt(static_cast<float>(s.width)));
      }
      matrix(b + "ffn_gate_shexp.weight", s.shared_feed_forward, s.width);
      matrix(b + "ffn_up_shexp.weight", s.shared_feed_forward, s.width);
      matrix(b + "ffn_down_shexp.weight", s.width, s.shared_feed_forward);
      continue;
    }
    if (gemma4) continue;
    if (!starcoder && !fuses_gate) matrix(b + "ffn_gate.weight", s.feed_forward, s.width);
    matrix(b + "ffn_up.weight", fuses_gate ? 2 * s.feed_forward : s.feed_forward, s.width);
    matrix(b + "ffn_down.weight", s.width, s.feed_forward);
    if (starcoder) {
      bias(b + "attn_output.bias", s.width);
      bias(b + "ffn_up.bias", s.feed_forward);
      bias(b + "ffn_down.bias", s.width);
    }
  }
  return m;
}

}  // namespace redline::test
