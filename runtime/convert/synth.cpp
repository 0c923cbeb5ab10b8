#include "runtime/convert/synth.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "runtime/base/hash.hpp"
#include "runtime/base/philox.hpp"
#include "runtime/convert/row_stream.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "runtime/gguf/tokenizer_keys.hpp"

namespace redline::convert {
namespace {

/// A small shape for tests, as `change` leaves it.
constexpr synth_shape tiny(std::string_view architecture, std::string_view name, auto change) {
  synth_shape s{{architecture, 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-5F}, name};
  change(s);
  return s;
}

/// DeepSeek's attention and mixture, and YaRN, in a small shape.
constexpr void make_small_latents(synth_shape& s) {
  s.kv_heads = 1;
  s.head_dim = 96;
  s.rotary_dim = 32;
  s.latent_rank = 256;
  s.value_dim = 64;
  s.experts = 8;
  s.experts_used = 2;
  s.expert_feed_forward = 256;
  s.shared_feed_forward = 512;
  s.dense_layers = 1;
  s.expert_scale = 1.5F;
  s.yarn_factor = 8;
  s.yarn_context = 256;
  s.yarn_log_multiplier = 0.0707F;
}

constexpr auto shapes = std::to_array<synth_shape>({
    {{"qwen2", 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6F, 1e-6F, true}, "qwen2-0.5b"},
    {{"qwen2", 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e6F, 1e-6F, true}, "qwen2-1.5b"},
    {{"qwen2", 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6F, 1e-6F, false}, "qwen2-7b"},
    {{"llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5F, 1e-5F, true}, "llama-1b"},
    {{"qwen3moe", 48, 2048, 32, 4, 128, 6144, 151936, 262144, 1e7F, 1e-6F, false, 128, 8, 768}, "qwen3-coder-30b-a3b"},
    {{"qwen2moe", 24, 2048, 16, 16, 128, 5632, 151936, 32768, 1e6F, 1e-6F, false, 60, 4, 1408, 5632},
     "qwen1.5-moe-a2.7b"},
    {{"llama", 32, 4096, 32, 8, 128, 14336, 32000, 32768, 1e6F, 1e-5F, false, 8, 2, 14336}, "mixtral-8x7b"},
    {{"granite", 40, 4096, 32, 8, 128, 12800, 49155, 131072, 1e7F, 1e-5F, true, 0, 0, 0, 0, 12, 0.22F, 0.0078125F, 16},
     "granite-3.3-8b"},
    {{"granitemoe", 32, 1536, 24, 8, 64, 512, 49155, 131072, 1e7F, 1e-6F, true, 40, 8, 512, 0, 12, 0.22F, 0.015625F, 6},
     "granite-3.1-3b-a800m"},
    {{.architecture = "gemma2",
      .layers = 26,
      .width = 2304,
      .heads = 8,
      .kv_heads = 4,
      .head_dim = 256,
      .feed_forward = 9216,
      .vocabulary = 256000,
      .context = 8192,
      .rope_base = 1e4F,
      .norm_epsilon = 1e-6F,
      .window = 4096,
      .attention_cap = 50,
      .logit_cap = 30},
     "gemma-2-2b"},
    {{.architecture = "gemma3",
      .layers = 26,
      .width = 1152,
      .heads = 4,
      .kv_heads = 1,
      .head_dim = 256,
      .feed_forward = 6912,
      .vocabulary = 262144,
      .context = 32768,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-6F,
      .window = 512},
     "gemma3-1b"},
    {{.architecture = "gpt-oss",
      .layers = 24,
      .width = 2880,
      .heads = 64,
      .kv_heads = 8,
      .head_dim = 64,
      .feed_forward = 2880,
      .vocabulary = 201088,
      .context = 131072,
      .rope_base = 1.5e5F,
      .norm_epsilon = 1e-5F,
      .tied_head = false,
      .experts = 32,
      .experts_used = 4,
      .expert_feed_forward = 2880,
      .window = 128,
      .yarn_factor = 32,
      .yarn_context = 4096},
     "gpt-oss-20b"},
    {{.architecture = "gpt-oss",
      .layers = 36,
      .width = 2880,
      .heads = 64,
      .kv_heads = 8,
      .head_dim = 64,
      .feed_forward = 2880,
      .vocabulary = 201088,
      .context = 131072,
      .rope_base = 1.5e5F,
      .norm_epsilon = 1e-5F,
      .tied_head = false,
      .experts = 128,
      .experts_used = 4,
      .expert_feed_forward = 2880,
      .window = 128,
      .yarn_factor = 32,
      .yarn_context = 4096},
     "gpt-oss-120b"},
    {{.architecture = "phi3",
      .layers = 32,
      .width = 3072,
      .heads = 24,
      .kv_heads = 8,
      .head_dim = 128,
      .feed_forward = 8192,
      .vocabulary = 200064,
      .context = 131072,
      .rope_base = 1e4F,
      .norm_epsilon = 1e-5F,
      .rotary_dim = 96,
      .short_context = 4096,
      .rope_magnitude = 1.1902381F},
     "phi-4-mini"},
    {{"olmo2", 16, 2048, 16, 16, 128, 8192, 100352, 4096, 5e5F, 1e-6F, false}, "olmo-2-1b"},
    {{.architecture = "glm4",
      .layers = 40,
      .width = 4096,
      .heads = 32,
      .kv_heads = 2,
      .head_dim = 128,
      .feed_forward = 13696,
      .vocabulary = 151552,
      .context = 32768,
      .rope_base = 1e4F,
      .norm_epsilon = 1e-5F,
      .tied_head = false,
      .rotary_dim = 64},
     "glm-4-9b"},
    {{.architecture = "command-r",
      .layers = 40,
      .width = 8192,
      .heads = 64,
      .kv_heads = 8,
      .head_dim = 128,
      .feed_forward = 24576,
      .vocabulary = 256000,
      .context = 131072,
      .rope_base = 4e6F,
      .norm_epsilon = 1e-5F,
      .logit_scale = 0.0625F},
     "command-r-35b"},
    {{.architecture = "deepseek2",
      .layers = 27,
      .width = 2048,
      .heads = 16,
      .kv_heads = 1,
      .head_dim = 192,
      .feed_forward = 10944,
      .vocabulary = 102400,
      .context = 163840,
      .rope_base = 1e4F,
      .norm_epsilon = 1e-6F,
      .tied_head = false,
      .experts = 64,
      .experts_used = 6,
      .expert_feed_forward = 1408,
      .shared_feed_forward = 2816,
      .yarn_factor = 40,
      .yarn_context = 4096,
      .rotary_dim = 64,
      .latent_rank = 512,
      .value_dim = 128,
      .dense_layers = 1,
      .yarn_log_multiplier = 0.0707F},
     "deepseek-v2-lite"},
    {{"qwen2", 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, true}, "tiny"},
    {{"llama", 2, 256, 8, 2, 32, 768, 512, 2048, 1e4F, 1e-5F, false}, "tiny-llama"},
    {{"qwen3moe", 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, true, 8, 2, 256}, "tiny-qwen3moe"},
    {{"qwen2moe", 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, false, 8, 2, 256, 512}, "tiny-qwen2moe"},
    {{"llama", 2, 256, 8, 2, 32, 512, 512, 2048, 1e4F, 1e-5F, false, 8, 2, 512}, "tiny-mixtral"},
    {{"granite", 2, 256, 8, 2, 32, 768, 512, 2048, 1e4F, 1e-5F, true, 0, 0, 0, 0, 1.5F, 0.5F, 0.25F, 2},
     "tiny-granite"},
    {{"granitemoe", 2, 256, 8, 2, 32, 256, 512, 2048, 1e4F, 1e-5F, true, 8, 2, 256, 0, 1.5F, 0.5F, 0.25F, 2},
     "tiny-granitemoe"},
    tiny("gemma2", "tiny-gemma2",
         [](auto& s) {
           s.norm_epsilon = 1e-6F;
           s.window = 24;
           s.attention_cap = 5;
           s.logit_cap = 15;
         }),
    tiny("gemma3", "tiny-gemma3",
         [](auto& s) {
           s.layers = 7;
           s.rope_base = 1e6F;
           s.norm_epsilon = 1e-6F;
           s.window = 24;
         }),
    tiny("gpt-oss", "tiny-gpt-oss",
         [](auto& s) {
           s.feed_forward = 256;
           s.tied_head = false;
           s.experts = 8;
           s.experts_used = 2;
           s.expert_feed_forward = 256;
           s.window = 24;
           s.yarn_factor = 8;
           s.yarn_context = 256;
         }),
    tiny("phi3", "tiny-phi",
         [](auto& s) {
           s.rotary_dim = 48;
           s.short_context = 256;
           s.rope_magnitude = 1.1726039F;
         }),
    tiny("glm4", "tiny-glm4",
         [](auto& s) {
           s.tied_head = false;
           s.rotary_dim = 32;
         }),
    tiny("command-r", "tiny-command-r", [](auto& s) { s.logit_scale = 0.25F; }),
    tiny("command-r", "tiny-command-r-plus",
         [](auto& s) {
           s.layers = 64;
           s.width = 64;
           s.head_dim = 16;
           s.feed_forward = 128;
           s.logit_scale = 0.25F;
           s.own_head_norms = true;
         }),
    tiny("deepseek2", "tiny-deepseek2",
         [](auto& s) {
           s.tied_head = false;
           make_small_latents(s);
           s.query_rank = 256;
         }),
    // llama.cpp takes queries that are made of the row itself in models of 27 layers alone.
    tiny("deepseek2", "tiny-deepseek2-lite",
         [](auto& s) {
           s.layers = 27;
           s.tied_head = false;
           make_small_latents(s);
         }),
    {{"olmo2", 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, false}, "tiny-olmo2"},
    tiny("olmo2", "tiny-olmo3",
         [](auto& s) {
           s.layers = 5;
           s.norm_epsilon = 1e-6F;
           s.tied_head = false;
           s.window = 24;
         }),
});

/// Nearly normal with variance 1: four bytes' sum has 4 * (256^2 - 1) / 12 and the mean 510.
float nearly_normal(std::uint32_t word) {
  const std::uint32_t pairs = (word & 0x00ff00ff) + (word >> 8 & 0x00ff00ff);
  const auto sum = static_cast<int>((pairs & 0xffff) + (pairs >> 16));
  return static_cast<float>(sum - 510) * 0.0067659F;
}

/// centre + spread * noise.
struct distribution {
  float centre = 0;
  float spread = 1;
};

row_source noise(std::uint64_t seed, std::string_view tensor, std::uint64_t columns, distribution d) {
  const std::uint64_t hash = fnv1a().add(tensor).value();
  const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
  return [=](std::uint64_t row, float* out) {
    for (std::uint64_t c = 0; c < columns; c += 4) {
      const auto words = philox4x32({static_cast<std::uint32_t>(c / 4), static_cast<std::uint32_t>(row),
                                     static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)},
                                    key);
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(4, columns - c); ++i) {
        out[c + i] = d.centre + d.spread * nearly_normal(words[i]);
      }
    }
  };
}

class model_writer {
 public:
  model_writer(const synth_options& options, kernels::worker_team& team)
      : o_(options), s_(options.shape), team_(team) {}

  result<gguf::gguf_writer> make() {
    put_metadata();
    if (o_.tokenizer != nullptr) {
      REDLINE_TRY(gguf::copy_tokenizer(*o_.tokenizer, s_.vocabulary, out_));
    } else {
      gguf::put_byte_tokenizer(s_.vocabulary, out_);
    }
    add_tensors();
    return std::move(out_);
  }

 private:
  void put_metadata() {
    gguf::put_shape(s_, out_);
    out_.put_string("general.name", "synthetic " + std::string(s_.name) + ", seed " + std::to_string(o_.seed));
    put_type(o_.type, out_);
  }

  /// gain 1 keeps the size of what goes in.
  void matrix(const std::string& name, std::uint64_t rows, std::uint64_t columns, float gain) {
    matrices(name, 1, rows, columns, gain);
  }

  /// A tensor of `count` matrices; of one, where that is all.
  void matrices(const std::string& name, std::uint64_t count, std::uint64_t rows, std::uint64_t columns, float gain) {
    const weight_type type = type_for(o_.type, {name, columns, s_.layers, s_.tied_head});
    const std::vector<std::uint64_t> dimensions =
        count == 1 ? std::vector{columns, rows} : std::vector{columns, rows, count};
    const float spread = gain / std::sqrt(static_cast<float>(columns));
    out_.add_tensor(name, to_tensor_type(type), dimensions, count * rows * kernels::row_bytes(type, columns),
                    stream_rows(team_, type, count * rows, columns, noise(o_.seed, name, columns, {0, spread})));
  }

  void vector(const std::string& name, std::uint64_t length, distribution d) {
    const std::uint64_t dimensions[] = {length};
    add_floats(name, dimensions, d);
  }

  /// A bias of each expert.
  void biases(const std::string& name, std::uint64_t length) {
    const std::uint64_t dimensions[] = {length, s_.experts};
    add_floats(name, dimensions, {0, 0.2F});
  }

  void add_floats(const std::string& name, std::span<const std::uint64_t> dimensions, distribution d) {
    const std::uint64_t length = dimensions.front(), rows = dimensions.size() == 2 ? dimensions[1] : 1;
    out_.add_tensor(name, gguf::tensor_type::f32, dimensions, rows * length * sizeof(float),
                    stream_rows(team_, weight_type::f32, rows, length, noise(o_.seed, name, length, d)));
  }

  void add_feed_forward(const std::string& b, std::uint32_t layer, float down_gain) {
    if (!s_.is_mixture(layer)) {
      if (!s_.has_fused_gate()) matrix(b + "gate.weight", s_.feed_forward, s_.width, 1);
      matrix(b + "up.weight", s_.feed_forward * (s_.has_fused_gate() ? 2ULL : 1ULL), s_.width, 1);
      return matrix(b + "down.weight", s_.width, s_.feed_forward, down_gain);
    }
    matrix(b + "gate_inp.weight", s_.experts, s_.width, 1);
    matrices(b + "gate_exps.weight", s_.experts, s_.expert_feed_forward, s_.width, 1);
    matrices(b + "up_exps.weight", s_.experts, s_.expert_feed_forward, s_.width, 1);
    // Shares that sum to one make a mixture's sum smaller than one expert's, by about their number's root.
    const float of_many = std::sqrt(static_cast<float>(s_.experts_used));
    matrices(b + "down_exps.weight", s_.experts, s_.width, s_.expert_feed_forward, down_gain * of_many);
    if (s_.is_gpt_oss()) {
      vector(b + "gate_inp.bias", s_.experts, {0, 0.2F});
      biases(b + "gate_exps.bias", s_.expert_feed_forward);
      biases(b + "up_exps.bias", s_.expert_feed_forward);
      biases(b + "down_exps.bias", s_.width);
    }
    if (s_.shared_feed_forward == 0) return;
    if (!s_.is_deepseek2()) {
      vector(b + "gate_inp_shexp.weight", s_.width, {0, 1 / std::sqrt(static_cast<float>(s_.width))});
    }
    matrix(b + "gate_shexp.weight", s_.shared_feed_forward, s_.width, 1);
    matrix(b + "up_shexp.weight", s_.shared_feed_forward, s_.width, 1);
    matrix(b + "down_shexp.weight", s_.width, s_.shared_feed_forward, down_gain);
  }

  void add_latents(const std::string& b, const distribution& norm) {
    const std::uint64_t rank = s_.latent_rank, plain = s_.plain_dim();
    if (s_.query_rank == 0) {
      matrix(b + "attn_q.weight", std::uint64_t{s_.heads} * s_.head_dim, s_.width, 1.5F);
    } else {
      matrix(b + "attn_q_a.weight", s_.query_rank, s_.width, 1);
      vector(b + "attn_q_a_norm.weight", s_.query_rank, norm);
      matrix(b + "attn_q_b.weight", std::uint64_t{s_.heads} * s_.head_dim, s_.query_rank, 1.5F);
    }
    matrix(b + "attn_kv_a_mqa.weight", rank + s_.rotary_dim, s_.width, 1.5F);
    vector(b + "attn_kv_a_norm.weight", rank, norm);
    // It makes keys of the vector, the other way round.
    const float turned = std::sqrt(static_cast<float>(plain) / static_cast<float>(rank));
    matrices(b + "attn_k_b.weight", s_.heads, rank, plain, 1.5F * turned);
    matrices(b + "attn_v_b.weight", s_.heads, s_.value_dim, rank, 1);
  }

  /// Fast pairs keep their speed, slow ones are slowed down, the slowest by how much longer the context became. The
  /// short factors are the roots of the long ones.
  void add_rope_factors() {
    const std::uint32_t pairs = s_.rotated() / 2;
    const float longer = static_cast<float>(s_.context) / static_cast<float>(s_.short_context);
    const std::uint64_t dimensions[] = {pairs};
    for (const auto& [name, most] :
         {std::pair("rope_factors_long.weight", longer), std::pair("rope_factors_short.weight", std::sqrt(longer))}) {
      std::vector<float> factors;
      for (std::uint32_t i = 0; i < pairs; ++i) {
        factors.push_back(1 + (most - 1) * static_cast<float>(i) / static_cast<float>(pairs));
      }
      out_.add_tensor(name, gguf::tensor_type::f32, dimensions, std::as_bytes(std::span(factors)));
    }
  }

  void add_tensors() {
    const distribution norm = {1, 0.1F};
    const std::uint64_t q = std::uint64_t{s_.heads} * s_.head_dim, kv = std::uint64_t{s_.kv_heads} * s_.head_dim;
    // Each layer adds to the residual stream twice; together they add about what one matrix of gain 1 would.
    const float residual_gain = 1 / std::sqrt(2 * static_cast<float>(s_.layers));
    // Where embeddings are multiplied by the root of the width they are smaller, and the last norm makes up for it.
    const float embedding_scale = s_.is_gemma() ? std::sqrt(static_cast<float>(s_.width)) : 1;
    matrix("token_embd.weight", s_.vocabulary, s_.width, 3 / embedding_scale);
    if (s_.short_context != 0) add_rope_factors();
    for (std::uint32_t layer = 0; layer < s_.layers; ++layer) {
      const std::string b = "blk." + std::to_string(layer) + ".";
      if (!s_.is_olmo2()) vector(b + "attn_norm.weight", s_.width, norm);
      if (s_.has_fused_qkv()) {
        matrix(b + "attn_qkv.weight", q + 2 * kv, s_.width, 1.5F);
      } else if (s_.is_deepseek2()) {
        add_latents(b, norm);
      } else {
        matrix(b + "attn_q.weight", q, s_.width, 1.5F);
        matrix(b + "attn_k.weight", kv, s_.width, 1.5F);
        matrix(b + "attn_v.weight", kv, s_.width, 1);
      }
      // Averaging over positions makes values small.
      matrix(b + "attn_output.weight", s_.width, s_.attended_width(), 2 * residual_gain);
      if (s_.has_qkv_biases()) {
        vector(b + "attn_q.bias", q, {0, 0.2F});
        vector(b + "attn_k.bias", kv, {0, 0.2F});
        vector(b + "attn_v.bias", kv, {0, 0.2F});
      }
      if (s_.has_head_norms()) {
        vector(b + "attn_q_norm.weight", s_.head_dim, norm);
        vector(b + "attn_k_norm.weight", s_.head_dim, norm);
      }
      if (s_.own_head_norms) {
        const std::uint64_t of_queries[] = {s_.head_dim, s_.heads}, of_keys[] = {s_.head_dim, s_.kv_heads};
        add_floats(b + "attn_q_norm.weight", of_queries, norm);
        add_floats(b + "attn_k_norm.weight", of_keys, norm);
      }
      if (s_.is_olmo2()) {
        vector(b + "attn_q_norm.weight", q, norm);
        vector(b + "attn_k_norm.weight", kv, norm);
      }
      if (s_.is_gpt_oss()) {
        vector(b + "attn_output.bias", s_.width, {0, 0.2F * residual_gain});
        vector(b + "attn_sinks.weight", s_.heads, {0, 1});
      }
      if (!s_.is_olmo2() && !s_.is_command_r()) {
        vector(b + (s_.is_gpt_oss() ? "post_attention_norm.weight" : "ffn_norm.weight"), s_.width, norm);
      }
      if (s_.has_post_norms()) {
        const distribution post_norm = {residual_gain, 0.1F * residual_gain};
        vector(b + "post_attention_norm.weight", s_.width, post_norm);
        vector(b + "post_ffw_norm.weight", s_.width, post_norm);
      }
      add_feed_forward(b + "ffn_", layer, 2 * residual_gain);  // the gate halves
    }
    vector("output_norm.weight", s_.width, {embedding_scale, 0.1F * embedding_scale});
    if (!s_.tied_head) matrix("output.weight", s_.vocabulary, s_.width, 3);
  }

  const synth_options& o_;
  const synth_shape& s_;
  kernels::worker_team& team_;
  gguf::gguf_writer out_;
};

}  // namespace

result<synth_shape> find_shape(std::string_view name) {
  const auto it = std::find_if(shapes.begin(), shapes.end(), [&](const synth_shape& s) { return s.name == name; });
  if (it != shapes.end()) return *it;
  return failure{errc::invalid_argument,
                 "shape: expected one of " + shape_names() + ", found '" + std::string(name) + "'"};
}

std::string shape_names() {
  std::string names;
  for (const synth_shape& s : shapes) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

result<void> write_synthetic(const synth_options& options, const std::string& path, kernels::worker_team& team,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  REDLINE_TRY(check(options.shape));
  REDLINE_TRY_ASSIGN(const gguf::gguf_writer out, model_writer(options, team).make());
  return out.write(path, progress);
}

}  // namespace redline::convert
