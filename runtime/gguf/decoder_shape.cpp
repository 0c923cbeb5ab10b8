#include "runtime/gguf/decoder_shape.hpp"

#include <algorithm>
#include <string>

namespace redline::gguf {
namespace {

// As model::read_config has them.
constexpr std::uint32_t size_max = 1U << 24;
constexpr std::uint32_t width_max = 1U << 20;
constexpr std::uint32_t context_max = 0x7fffffff;
constexpr std::uint32_t layers_max = 4096;
constexpr std::uint32_t head_dim_max = 256;
constexpr std::uint32_t experts_max = 1024;
constexpr std::uint32_t cached_dim_max = 1024;

/// Of what is particular to DeepSeek 2; empty: nothing is wrong.
std::string wrong_latents(const decoder_shape& s) {
  const auto between = [](const char* what, std::uint32_t most, std::uint32_t found) {
    return "expected " + std::string(what) + " from 1 to " + std::to_string(most) + ", found " + std::to_string(found);
  };
  if (s.rotary_dim == 0 || s.rotary_dim >= s.head_dim) {
    return between("rotated dimensions", s.head_dim - 1, s.rotary_dim);
  }
  const std::uint32_t rank_max = cached_dim_max - s.rotary_dim;
  if (s.latent_rank == 0 || s.latent_rank > rank_max) return between("a latent rank", rank_max, s.latent_rank);
  if (s.value_dim == 0 || s.value_dim > head_dim_max) return between("a value size", head_dim_max, s.value_dim);
  if (s.query_rank > width_max) return between("a query rank", width_max, s.query_rank);
  if (s.kv_heads != 1) return between("heads for keys and values", 1, s.kv_heads);
  if (std::uint64_t{s.heads} * (s.latent_rank + s.rotary_dim) > width_max) {
    return "expected less than " + std::to_string(width_max) + " numbers in a row's queries";
  }
  if (s.expert_feed_forward == 0 || s.shared_feed_forward % s.expert_feed_forward != 0) {
    return "expected shared experts as wide as the others, found " + std::to_string(s.shared_feed_forward) +
           " together, " + std::to_string(s.expert_feed_forward) + " each";
  }
  return {};
}

void put_latents(const decoder_shape& s, const std::string& prefix, gguf_writer& to) {
  to.put_u32(prefix + "attention.key_length", s.latent_rank + s.rotary_dim);
  to.put_u32(prefix + "attention.value_length", s.latent_rank);
  to.put_u32(prefix + "attention.key_length_mla", s.head_dim);
  to.put_u32(prefix + "attention.value_length_mla", s.value_dim);
  to.put_u32(prefix + "attention.kv_lora_rank", s.latent_rank);
  if (s.query_rank != 0) to.put_u32(prefix + "attention.q_lora_rank", s.query_rank);
  to.put_u32(prefix + "leading_dense_block_count", s.dense_layers);
  to.put_u32(prefix + "expert_shared_count", s.shared_feed_forward / s.expert_feed_forward);
  to.put_u32(prefix + "expert_gating_func", 1);
  to.put_bool(prefix + "expert_weights_norm", s.normalises_experts);
  to.put_f32(prefix + "expert_weights_scale", s.expert_scale == 0 ? 1 : s.expert_scale);
}

}  // namespace

result<void> check(const decoder_shape& s) {
  const auto refuse = [&](const std::string& what) { return failure{errc::invalid_argument, "shape: " + what}; };
  for (const std::uint32_t n : {s.layers, s.width, s.heads, s.kv_heads, s.head_dim, s.feed_forward, s.vocabulary}) {
    if (n == 0 || n > size_max) {
      return refuse("expected sizes from 1 to " + std::to_string(size_max) + ", found " + std::to_string(n));
    }
  }
  if (s.context == 0 || s.context > context_max) {
    return refuse("expected a context from 1 to " + std::to_string(context_max) + ", found " +
                  std::to_string(s.context));
  }
  if (s.heads % s.kv_heads != 0) {
    return refuse(std::to_string(s.heads) + " heads are no multiple of " + std::to_string(s.kv_heads) +
                  " for keys and values");
  }
  if (s.head_dim % 2 != 0 || s.head_dim > head_dim_max) {
    return refuse("expected an even head size up to " + std::to_string(head_dim_max) + ", found " +
                  std::to_string(s.head_dim));
  }
  if (s.rotated() % 2 != 0 || s.rotated() > s.head_dim) {
    return refuse("expected an even number of rotated dimensions up to " + std::to_string(s.head_dim) + ", found " +
                  std::to_string(s.rotated()));
  }
  for (const std::uint64_t n :
       {std::uint64_t{s.width}, std::uint64_t{s.feed_forward}, std::uint64_t{s.heads} * s.head_dim}) {
    if (n > width_max) {
      return refuse("expected rows of at most " + std::to_string(width_max) + ", found " + std::to_string(n));
    }
  }
  if (s.is_deepseek2()) {
    const std::string wrong = wrong_latents(s);
    if (!wrong.empty()) return refuse(wrong);
  }
  const bool needs_experts = s.architecture.ends_with("moe") || s.is_gpt_oss() || s.is_deepseek2();
  if (s.experts > experts_max || (needs_experts && s.experts == 0)) {
    return refuse("expected 1 to " + std::to_string(experts_max) + " experts, found " + std::to_string(s.experts));
  }
  if (s.experts != 0 && (s.experts_used == 0 || s.experts_used > s.experts)) {
    return refuse("expected rows to use 1 to " + std::to_string(s.experts) + " experts, found " +
                  std::to_string(s.experts_used));
  }
  const bool lacks_width = s.experts != 0 && s.expert_feed_forward == 0;
  if (lacks_width || std::max(s.expert_feed_forward, s.shared_feed_forward) > width_max) {
    return refuse("expected experts of a width from 1 to " + std::to_string(width_max) + ", found " +
                  std::to_string(lacks_width ? 0 : std::max(s.expert_feed_forward, s.shared_feed_forward)));
  }
  if (s.layers > layers_max) {
    return refuse("expected at most " + std::to_string(layers_max) + " layers, found " + std::to_string(s.layers));
  }
  return {};
}

void put_shape(const decoder_shape& s, gguf_writer& to) {
  const std::string prefix = std::string(s.architecture) + ".";
  to.put_string("general.architecture", s.architecture);
  to.put_u32(prefix + "block_count", s.layers);
  to.put_u32(prefix + "context_length", s.context);
  to.put_u32(prefix + "embedding_length", s.width);
  to.put_u32(prefix + "feed_forward_length", s.feed_forward);
  if (s.experts != 0) {
    to.put_u32(prefix + "expert_count", s.experts);
    to.put_u32(prefix + "expert_used_count", s.experts_used);
    to.put_u32(prefix + "expert_feed_forward_length", s.expert_feed_forward);
    if (s.shared_feed_forward != 0 && !s.is_deepseek2()) {
      to.put_u32(prefix + "expert_shared_feed_forward_length", s.shared_feed_forward);
    }
  }
  to.put_u32(prefix + "attention.head_count", s.heads);
  to.put_u32(prefix + "attention.head_count_kv", s.kv_heads);
  if (s.is_deepseek2()) {
    put_latents(s, prefix, to);
  } else {
    to.put_u32(prefix + "attention.key_length", s.head_dim);
    to.put_u32(prefix + "attention.value_length", s.head_dim);
  }
  to.put_u32(prefix + "rope.dimension_count", s.rotated());
  to.put_f32(prefix + "rope.freq_base", s.rope_base);
  to.put_f32(prefix + (s.has_layer_norms() ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
             s.norm_epsilon);
  const auto put_if = [&](const char* name, float multiplier) {
    if (multiplier != 0) to.put_f32(prefix + name, multiplier);
  };
  put_if("embedding_scale", s.embedding_scale);
  put_if("residual_scale", s.residual_scale);
  put_if("attention.scale", s.attention_scale);
  put_if("logit_scale", s.logit_scale);
  put_if("attn_logit_softcapping", s.attention_cap);
  put_if("final_logit_softcapping", s.logit_cap);
  put_if("rope.freq_base_swa", s.window_rope_base);
  if (s.window != 0) to.put_u32(prefix + "attention.sliding_window", s.window);
  if (s.window_period != 0) to.put_u32(prefix + "attention.sliding_window_pattern", s.window_period);
  if (s.yarn_factor != 0) {
    to.put_string(prefix + "rope.scaling.type", "yarn");
    to.put_f32(prefix + "rope.scaling.factor", s.yarn_factor);
    to.put_u32(prefix + "rope.scaling.original_context_length", s.yarn_context);
  }
  put_if("rope.scaling.yarn_log_multiplier", s.yarn_log_multiplier);
  if (s.short_context != 0) to.put_u32(prefix + "rope.scaling.original_context_length", s.short_context);
  put_if("rope.scaling.attn_factor", s.rope_magnitude);
  to.put_u32(prefix + "vocab_size", s.vocabulary);
}

}  // namespace redline::gguf
