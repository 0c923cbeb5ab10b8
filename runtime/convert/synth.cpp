#include "runtime/convert/synth.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "runtime/architecture/shape_keys.hpp"
#include "runtime/architecture/tensors.hpp"
#include "runtime/base/hash.hpp"
#include "runtime/base/philox.hpp"
#include "runtime/convert/row_stream.hpp"
#include "runtime/gguf/gguf_writer.hpp"
#include "runtime/gguf/tokenizer_keys.hpp"

namespace redline::convert {
namespace {

using architecture::latent_shape;
using architecture::role;
using architecture::tensor;
using architecture::yarn_scaling;

const architecture::family* of(std::string_view family) { return architecture::find_family(family); }

/// A small shape for tests, modified by `change`.
synth_shape tiny(std::string_view family, std::string_view name, auto change) {
  synth_shape s{{of(family), 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-5F}, name};
  change(s);
  return s;
}

/// Sets DeepSeek's attention and mixture, and YaRN, in a small shape.
void make_small_latents(synth_shape& s) {
  s.kv_heads = 1;
  s.head_dim = 288;
  s.rotary_dim = 32;
  s.latent = {.rank = 256, .plain_dim = 64, .value_dim = 64};
  s.experts = 8;
  s.experts_used = 2;
  s.expert_feed_forward = 256;
  s.shared_feed_forward = 512;
  s.dense_layers = 1;
  s.expert_scale = 1.5F;
  s.yarn = {.factor = 8, .original_context = 256};
  s.yarn_log_multiplier = 0.0707F;
}

/// The kinds of layers of which those with these numbers have attention and the others are recurrent.
std::vector<architecture::layer_kind> attention_in(std::uint32_t layers, std::initializer_list<std::uint32_t> which) {
  std::vector<architecture::layer_kind> kinds(layers, architecture::layer_kind::recurrent);
  for (const std::uint32_t layer : which) kinds[layer] = architecture::layer_kind::full;
  return kinds;
}

/// The kinds of layers of which the last in each group of this size sees all tokens and the others have a window.
std::vector<architecture::layer_kind> windows_between(std::uint32_t layers, std::uint32_t period) {
  std::vector<architecture::layer_kind> kinds(layers, architecture::layer_kind::window);
  for (std::uint32_t i = period - 1; i < layers; i += period) kinds[i] = architecture::layer_kind::full;
  return kinds;
}

/// Sets recurrent layers and a mixture in a small shape.
void make_small_hybrid(synth_shape& s) {
  s.layers = 4;
  s.tied_head = false;
  s.experts = 8;
  s.experts_used = 2;
  s.expert_feed_forward = 256;
  s.shared_feed_forward = 256;
  s.delta = {.taps = 4, .key_heads = 2, .value_heads = 4, .head_dim = 64};
}

const std::array shapes = std::to_array<synth_shape>({
    {{of("qwen2"), 24, 896, 14, 2, 64, 4864, 151936, 32768, 1e6F, 1e-6F, true}, "qwen2-0.5b"},
    {{of("qwen2"), 28, 1536, 12, 2, 128, 8960, 151936, 32768, 1e6F, 1e-6F, true}, "qwen2-1.5b"},
    {{of("qwen2"), 28, 3584, 28, 4, 128, 18944, 152064, 32768, 1e6F, 1e-6F, false}, "qwen2-7b"},
    {{of("llama"), 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5F, 1e-5F, true}, "llama-1b"},
    {{of("qwen3moe"), 48, 2048, 32, 4, 128, 6144, 151936, 262144, 1e7F, 1e-6F, false, 128, 8, 768},
     "qwen3-coder-30b-a3b"},
    {{of("qwen2moe"), 24, 2048, 16, 16, 128, 5632, 151936, 32768, 1e6F, 1e-6F, false, 60, 4, 1408, 5632},
     "qwen1.5-moe-a2.7b"},
    {{of("llama"), 32, 4096, 32, 8, 128, 14336, 32000, 32768, 1e6F, 1e-5F, false, 8, 2, 14336}, "mixtral-8x7b"},
    {{of("granite"), 40,   4096, 32, 8, 128, 12800, 49155, 131072,     1e7F,
      1e-5F,         true, 0,    0,  0, 0,   12,    0.22F, 0.0078125F, 16},
     "granite-3.3-8b"},
    {{of("granitemoe"), 32, 1536, 24, 8, 64, 512, 49155, 131072, 1e7F, 1e-6F, true, 40, 8, 512, 0, 12, 0.22F,
      0.015625F,        6},
     "granite-3.1-3b-a800m"},
    {{.kind = of("gemma2"),
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
      .attention_cap = 50,
      .logit_cap = 30,
      .window = 4096},
     "gemma-2-2b"},
    {{.kind = of("gemma3"),
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
    {{.kind = of("gemma4"),
      .layers = 42,
      .width = 2560,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 512,
      .feed_forward = 10240,
      .vocabulary = 262144,
      .context = 131072,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-6F,
      .logit_cap = 30,
      .window = 512,
      .layer_kinds = windows_between(42, 6),
      .varied = {{.window_head_dim = 256,
                  .window_kv_heads = 2,
                  .window_rotary_dim = 256,
                  .sharing_layers = 18,
                  .sharing_feed_forward = 10240,
                  .layer_input = 256}}},
     "gemma4-e4b"},
    {{.kind = of("gemma4"),
      .layers = 30,
      .width = 2816,
      .heads = 16,
      .kv_heads = 2,
      .head_dim = 512,
      .feed_forward = 2112,
      .vocabulary = 262144,
      .context = 262144,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-6F,
      .experts = 128,
      .experts_used = 8,
      .expert_feed_forward = 704,
      .logit_cap = 30,
      .window = 1024,
      .layer_kinds = windows_between(30, 6),
      .varied = {{.window_head_dim = 256,
                  .window_kv_heads = 8,
                  .window_rotary_dim = 256,
                  .sharing_feed_forward = 2112,
                  .keys_are_values = true}}},
     "gemma4-26b-a4b"},
    {{.kind = of("gpt-oss"),
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
      .yarn = yarn_scaling{.factor = 32, .original_context = 4096}},
     "gpt-oss-20b"},
    {{.kind = of("gpt-oss"),
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
      .yarn = yarn_scaling{.factor = 32, .original_context = 4096}},
     "gpt-oss-120b"},
    {{.kind = of("phi3"),
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
      .rope_magnitude = 1.1902381F,
      .short_context = 4096},
     "phi-4-mini"},
    {{of("olmo2"), 16, 2048, 16, 16, 128, 8192, 100352, 4096, 5e5F, 1e-6F, false}, "olmo-2-1b"},
    {{.kind = of("glm4"),
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
    {{.kind = of("command-r"),
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
    {{.kind = of("deepseek2"),
      .layers = 27,
      .width = 2048,
      .heads = 16,
      .kv_heads = 1,
      .head_dim = 576,
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
      .rotary_dim = 64,
      .yarn = yarn_scaling{.factor = 40, .original_context = 4096},
      .yarn_log_multiplier = 0.0707F,
      .latent = latent_shape{.rank = 512, .plain_dim = 128, .value_dim = 128},
      .dense_layers = 1},
     "deepseek-v2-lite"},
    {{.kind = of("deepseek2"),
      .layers = 47,
      .width = 2048,
      .heads = 20,
      .kv_heads = 1,
      .head_dim = 576,
      .feed_forward = 10240,
      .vocabulary = 154880,
      .context = 202752,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-5F,
      .tied_head = false,
      .experts = 64,
      .experts_used = 4,
      .expert_feed_forward = 1536,
      .shared_feed_forward = 1536,
      .rotary_dim = 64,
      .latent = latent_shape{.rank = 512, .query_rank = 768, .plain_dim = 192, .value_dim = 256},
      .dense_layers = 1,
      .normalises_experts = true,
      .expert_scale = 1.8F,
      .gates = architecture::gating::sigmoid,
      .selection_bias = true},
     "glm-4.7-flash"},
    {{.kind = of("qwen35"),
      .layers = 24,
      .width = 1024,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 256,
      .feed_forward = 3584,
      .vocabulary = 248320,
      .context = 262144,
      .rope_base = 1e7F,
      .norm_epsilon = 1e-6F,
      .rotary_dim = 64,
      .delta = architecture::delta_shape{.taps = 4, .key_heads = 16, .value_heads = 16, .head_dim = 128}},
     "qwen3.5-0.8b"},
    {{.kind = of("qwen35"),
      .layers = 24,
      .width = 2048,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 256,
      .feed_forward = 6144,
      .vocabulary = 248320,
      .context = 262144,
      .rope_base = 1e7F,
      .norm_epsilon = 1e-6F,
      .rotary_dim = 64,
      .delta = architecture::delta_shape{.taps = 4, .key_heads = 16, .value_heads = 16, .head_dim = 128}},
     "qwen3.5-2b"},
    {{.kind = of("qwen35moe"),
      .layers = 40,
      .width = 2048,
      .heads = 16,
      .kv_heads = 2,
      .head_dim = 256,
      .feed_forward = 512,
      .vocabulary = 248320,
      .context = 262144,
      .rope_base = 1e7F,
      .norm_epsilon = 1e-6F,
      .tied_head = false,
      .experts = 256,
      .experts_used = 8,
      .expert_feed_forward = 512,
      .shared_feed_forward = 512,
      .rotary_dim = 64,
      .delta = architecture::delta_shape{.taps = 4, .key_heads = 16, .value_heads = 32, .head_dim = 128}},
     "qwen3.5-35b-a3b"},
    {{.kind = of("qwen3next"),
      .layers = 48,
      .width = 2048,
      .heads = 16,
      .kv_heads = 2,
      .head_dim = 256,
      .feed_forward = 5120,
      .vocabulary = 151936,
      .context = 262144,
      .rope_base = 5e6F,
      .norm_epsilon = 1e-6F,
      .tied_head = false,
      .experts = 512,
      .experts_used = 10,
      .expert_feed_forward = 512,
      .shared_feed_forward = 512,
      .rotary_dim = 64,
      .delta = architecture::delta_shape{.taps = 4, .key_heads = 16, .value_heads = 32, .head_dim = 128}},
     "qwen3-coder-next"},
    {{.kind = of("lfm2"),
      .layers = 16,
      .width = 2048,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 64,
      .feed_forward = 8192,
      .vocabulary = 65536,
      .context = 128000,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-5F,
      .layer_kinds = attention_in(16, {2, 5, 8, 10, 12, 14}),
      .convolution_taps = 3},
     "lfm2-1.2b"},
    {{.kind = of("lfm2moe"),
      .layers = 24,
      .width = 2048,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 64,
      .feed_forward = 7168,
      .vocabulary = 65536,
      .context = 128000,
      .rope_base = 1e6F,
      .norm_epsilon = 1e-5F,
      .experts = 32,
      .experts_used = 4,
      .expert_feed_forward = 1792,
      .layer_kinds = attention_in(24, {2, 6, 10, 14, 18, 21}),
      .convolution_taps = 3,
      .dense_layers = 2,
      .normalises_experts = true,
      .gates = architecture::gating::sigmoid,
      .selection_bias = true},
     "lfm2-8b-a1b"},
    {{of("qwen2"), 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, true}, "tiny"},
    {{of("llama"), 2, 256, 8, 2, 32, 768, 512, 2048, 1e4F, 1e-5F, false}, "tiny-llama"},
    {{of("qwen3moe"), 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, true, 8, 2, 256}, "tiny-qwen3moe"},
    tiny("mistral3", "tiny-mistral3",
         [](auto& s) {
           s.yarn = {.factor = 8, .original_context = 256};
           s.yarn_log_multiplier = 1;
           s.temperature_scale = 0.1F;
         }),
    tiny("qwen35", "tiny-qwen35",
         [](auto& s) {
           s.layers = 4;
           s.delta = {.taps = 4, .key_heads = 2, .value_heads = 4, .head_dim = 64};
         }),
    tiny("qwen35moe", "tiny-qwen35moe", make_small_hybrid),
    tiny("qwen3next", "tiny-qwen3next", make_small_hybrid),
    tiny("lfm2", "tiny-lfm2",
         [](auto& s) {
           s.layers = 4;
           s.layer_kinds = attention_in(4, {2});
           s.convolution_taps = 3;
         }),
    tiny("lfm2moe", "tiny-lfm2moe",
         [](auto& s) {
           s.layers = 4;
           s.layer_kinds = attention_in(4, {1, 2});
           s.convolution_taps = 3;
           s.experts = 8;
           s.experts_used = 2;
           s.expert_feed_forward = 256;
           s.dense_layers = 1;
           s.normalises_experts = true;
           s.gates = architecture::gating::sigmoid;
           s.selection_bias = true;
         }),
    tiny("mellum", "tiny-mellum",
         [](auto& s) {
           s.tied_head = false;
           s.layers = 5;
           s.experts = 8;
           s.experts_used = 2;
           s.expert_feed_forward = 256;
           s.window = 24;
           s.yarn = {.factor = 8, .original_context = 256};
         }),
    {{of("qwen2moe"), 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, false, 8, 2, 256, 512}, "tiny-qwen2moe"},
    {{of("llama"), 2, 256, 8, 2, 32, 512, 512, 2048, 1e4F, 1e-5F, false, 8, 2, 512}, "tiny-mixtral"},
    {{of("granite"), 2, 256, 8, 2, 32, 768, 512, 2048, 1e4F, 1e-5F, true, 0, 0, 0, 0, 1.5F, 0.5F, 0.25F, 2},
     "tiny-granite"},
    {{of("granitemoe"), 2, 256, 8, 2, 32, 256, 512, 2048, 1e4F, 1e-5F, true, 8, 2, 256, 0, 1.5F, 0.5F, 0.25F, 2},
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
    tiny("gemma4", "tiny-gemma4",
         [](auto& s) {
           s.layers = 6;
           s.rope_base = 1e6F;
           s.norm_epsilon = 1e-6F;
           s.logit_cap = 30;
           s.window = 24;
           s.layer_kinds = windows_between(6, 2);
           s.varied = {.window_head_dim = 32,
                       .window_kv_heads = 4,
                       .window_rotary_dim = 32,
                       .sharing_layers = 2,
                       .sharing_feed_forward = 1024,
                       .layer_input = 32};
         }),
    tiny("gemma4", "tiny-gemma4-moe",
         [](auto& s) {
           s.layers = 4;
           s.rope_base = 1e6F;
           s.norm_epsilon = 1e-6F;
           s.logit_cap = 30;
           s.experts = 8;
           s.experts_used = 2;
           s.expert_feed_forward = 256;
           s.window = 24;
           s.layer_kinds = windows_between(4, 2);
           s.varied = {.window_head_dim = 32,
                       .window_kv_heads = 4,
                       .window_rotary_dim = 32,
                       .sharing_feed_forward = 512,
                       .keys_are_values = true};
         }),
    tiny("gpt-oss", "tiny-gpt-oss",
         [](auto& s) {
           s.feed_forward = 256;
           s.tied_head = false;
           s.experts = 8;
           s.experts_used = 2;
           s.expert_feed_forward = 256;
           s.window = 24;
           s.yarn = {.factor = 8, .original_context = 256};
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
           s.latent->query_rank = 256;
         }),
    tiny("deepseek2", "tiny-glm-flash",
         [](auto& s) {
           s.tied_head = false;
           make_small_latents(s);
           s.latent->query_rank = 256;
           s.yarn.reset();
           s.yarn_log_multiplier = 0;
           s.normalises_experts = true;
           s.gates = architecture::gating::sigmoid;
           s.expert_groups = 2;
           s.selection_bias = true;
         }),
    // llama.cpp accepts queries computed from the row itself only in models of 27 layers.
    tiny("deepseek2", "tiny-deepseek2-lite",
         [](auto& s) {
           s.layers = 27;
           s.tied_head = false;
           make_small_latents(s);
         }),
    {{of("olmo2"), 2, 256, 4, 2, 64, 512, 512, 2048, 1e4F, 1e-6F, false}, "tiny-olmo2"},
    tiny("olmo2", "tiny-olmo3",
         [](auto& s) {
           s.layers = 5;
           s.norm_epsilon = 1e-6F;
           s.tied_head = false;
           s.window = 24;
         }),
});

/// Nearly normal with variance 1: the sum of four bytes has variance 4 * (256^2 - 1) / 12 and mean 510.
float nearly_normal(std::uint32_t word) {
  const std::uint32_t pairs = (word & 0x00ff00ff) + (word >> 8 & 0x00ff00ff);
  const auto sum = static_cast<int>((pairs & 0xffff) + (pairs >> 16));
  return static_cast<float>(sum - 510) * 0.0067659F;
}

/// The distribution center + spread * noise.
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
    architecture::put_shape(s_, out_);
    out_.put_string("general.name", "synthetic " + std::string(s_.shape_name) + ", seed " + std::to_string(o_.seed));
    put_type(o_.type, out_);
  }

  void add(const tensor& t) {
    const distribution d = spread_of(t);
    if (t.columns == 0) {
      const weight_type type = weight_type::f32;
      out_.add_tensor(t.gguf, gguf::tensor_type::f32, t.dimensions(), t.count * t.rows * sizeof(float),
                      stream_rows(team_, type, t.count, t.rows, noise(o_.seed, t.gguf, t.rows, d)));
      return;
    }
    const weight_type type = type_for(o_.type, {t.gguf, t.columns, s_.layers, s_.tied_head});
    out_.add_tensor(t.gguf, to_tensor_type(type), t.dimensions(),
                    t.count * t.rows * kernels::row_bytes(type, t.columns),
                    stream_rows(team_, type, t.count * t.rows, t.columns, noise(o_.seed, t.gguf, t.columns, d)));
  }

  /// Weights around 0 with a gain of 1 preserve the magnitude of a matrix's input.
  [[nodiscard]] distribution spread_of(const tensor& t) const {
    // Each layer adds to the residual stream twice; together they add about as much as one matrix of gain 1 would.
    const float residual_gain = 1 / std::sqrt(2 * static_cast<float>(s_.layers));
    const auto gain = [&](float g) {
      return distribution{0, g / std::sqrt(static_cast<float>(std::max(t.columns, std::uint64_t{1})))};
    };
    // If embeddings are multiplied by the root of the width they are smaller, and the last norm compensates.
    const float embedding_scale = s_.kind->scales_embedding ? std::sqrt(static_cast<float>(s_.width)) : 1;
    switch (t.is) {
      case role::token_embedding:
        return gain(3 / embedding_scale);
      case role::output:
        return gain(3);
      case role::output_norm:
        return {embedding_scale, 0.1F * embedding_scale};
      case role::attention_norm:
      case role::feed_forward_norm:
      case role::query_norm:
      case role::key_norm:
      case role::query_down_norm:
      case role::latent_norm:
      case role::delta_norm:
      case role::expert_norm:
      case role::expert_scales:
      case role::layer_projection_norm:
      case role::mtp_embedding_norm:
      case role::mtp_state_norm:
      case role::mtp_output_norm:
        return {1, 0.1F};
      case role::layer_embedding:  // multiplied by the root of a layer's part
        return {0, 1 / std::sqrt(static_cast<float>(std::max(1U, s_.varied ? s_.varied->layer_input : 1)))};
      case role::router_scale: {  // divided by the root of the width
        const float root = std::sqrt(static_cast<float>(s_.width));
        return {root, 0.1F * root};
      }
      case role::layer_scale:
        return {1, 0};
      case role::delta_decay:
        return {-0.3F, 0.03F};
      case role::attention_post_norm:
      case role::feed_forward_post_norm:
      case role::dense_post_norm:
      case role::expert_post_norm:
      case role::layer_input_post_norm:
        return {residual_gain, 0.1F * residual_gain};
      case role::query_key_value:
      case role::query:
      case role::query_up:
      case role::key:
      case role::latent_down:
        return gain(1.5F);
      case role::latent_keys:  // they compute keys from the vector, transposed
        return gain(1.5F * std::sqrt(static_cast<float>(t.columns) / static_cast<float>(t.rows)));
      case role::state_output:
      case role::attention_output:  // averaging over positions makes values small
        return gain(2 * residual_gain);
      case role::down:
      case role::shared_down:  // the gate halves the values
        return gain(2 * residual_gain);
      case role::expert_downs:
        // Shares that sum to one make a mixture's sum smaller than one expert's, by about the root of their number.
        return gain(2 * residual_gain * std::sqrt(static_cast<float>(s_.experts_used)));
      case role::attention_output_bias:
        return {0, 0.2F * residual_gain};
      case role::sinks:
        return {0, 1};
      case role::shared_router:
        return {0, 1 / std::sqrt(static_cast<float>(s_.width))};
      default:
        return t.columns == 0 ? distribution{0, 0.2F} : gain(1);  // biases; other matrices
    }
  }

  /// Fast pairs keep their speed and slow ones are slowed down, the slowest by the ratio of the context lengths. The
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

  /// In layers that see all tokens, a quarter of the pairs rotates.
  void add_rope_divisors() {
    const std::uint64_t pairs = s_.rotated() / 2, dimensions[] = {pairs};
    std::vector<float> divisors(pairs, 1e30F);
    std::fill_n(divisors.begin(), pairs / 4, 1.0F);
    out_.add_tensor("rope_freqs.weight", gguf::tensor_type::f32, dimensions, std::as_bytes(std::span(divisors)));
  }

  void add_tensors() {
    const std::vector<tensor> outer = outer_tensors(s_);
    const auto add_outer = [&](bool is_first) {
      for (const tensor& t : outer) {
        if ((t.is == role::token_embedding) == is_first) add(t);
      }
    };
    add_outer(true);
    if (s_.short_context != 0) add_rope_factors();
    if (s_.varied) add_rope_divisors();
    for (std::uint32_t layer = 0; layer < s_.read_layers(); ++layer) {
      std::vector<tensor> all = layer_tensors(s_, layer);
      std::ranges::sort(all, {}, &tensor::is);  // converted files use the order of the family's row instead
      for (const tensor& t : all) add(t);
    }
    add_outer(false);
  }

  const synth_options& o_;
  const synth_shape& s_;
  kernels::worker_team& team_;
  gguf::gguf_writer out_;
};

}  // namespace

void synth_shape::set_layers(std::uint32_t count) {
  const std::size_t known = layer_kinds.size();
  if (varied)
    varied->sharing_layers = static_cast<std::uint32_t>(std::uint64_t{varied->sharing_layers} * count / layers);
  layers = count;
  if (known == 0 || count > architecture::layers_max) return;  // the latter is refused by check
  for (std::size_t i = known; i < count; ++i) layer_kinds.push_back(layer_kinds[i - known]);
  layer_kinds.resize(count);
}

result<synth_shape> find_shape(std::string_view name) {
  const auto it = std::ranges::find(shapes, name, &synth_shape::shape_name);
  if (it != shapes.end()) {
    synth_shape found = *it;
    found.qkv_biases = found.kind->qkv_biases;
    return found;
  }
  return failure{errc::invalid_argument,
                 "shape: expected one of " + shape_names() + ", found '" + std::string(name) + "'"};
}

std::string shape_names() {
  std::string names;
  for (const synth_shape& s : shapes) names += (names.empty() ? "" : ", ") + std::string(s.shape_name);
  return names;
}

result<void> write_synthetic(const synth_options& options, const std::string& path, kernels::worker_team& team,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  REDLINE_TRY(architecture::check(options.shape));
  REDLINE_TRY_ASSIGN(const gguf::gguf_writer out, model_writer(options, team).make());
  return out.write(path, progress);
}

}  // namespace redline::convert
