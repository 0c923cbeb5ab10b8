#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::gguf {

/// The sizes of a decoder, as its metadata will say them.
struct decoder_shape {
  std::string_view architecture;  // as model::read_config knows them; a literal
  std::uint32_t layers = 0;
  std::uint32_t width = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t context = 0;
  float rope_base = 0;
  float norm_epsilon = 0;
  bool tied_head = true;
  // A mixture of experts, where `experts` is not 0; feed_forward is then what a dense layer would have.
  std::uint32_t experts = 0;
  std::uint32_t experts_used = 0;
  std::uint32_t expert_feed_forward = 0;
  std::uint32_t shared_feed_forward = 0;  // of the expert that all rows go to; 0: none

  // Granite's, the last Command-R's, too; 0: as other families have it.
  float embedding_scale = 0;
  float residual_scale = 0;
  float attention_scale = 0;
  float logit_scale = 0;  // as files have it: Granite divides logits by it, Command-R multiplies them with it

  // Of layers that see a window of the last tokens (Gemma 2 and 3, gpt-oss, Mistral); 0: none, or as is usual.
  std::uint32_t window = 0;         // tokens
  std::uint32_t window_period = 0;  // of every so many layers all but the last have it
  float window_rope_base = 0;       // Gemma 3's
  // Gemma's soft caps of scores and logits; 0: none.
  float attention_cap = 0;
  float logit_cap = 0;
  // YaRN, where the factor is not 0.
  float yarn_factor = 0;
  std::uint32_t yarn_context = 0;  // tokens before it is stretched

  std::uint32_t rotary_dim = 0;  // leading dimensions of a head that are rotated; 0: all
  // LongRoPE: the longest context of its short factors, in tokens; 0: there is none. What is rotated grows by the
  // second.
  std::uint32_t short_context = 0;
  float rope_magnitude = 0;

  // DeepSeek 2, where `latent_rank` is not 0: heads make their keys and values of a vector of so many numbers, and
  // queries of one of `query_rank`; 0: of the row itself. head_dim is that of a head's own key, whose last rotary_dim
  // dimensions all heads share, and kv_heads is 1.
  std::uint32_t latent_rank = 0;
  std::uint32_t query_rank = 0;
  std::uint32_t value_dim = 0;     // of a head's own value
  std::uint32_t dense_layers = 0;  // before the first mixture
  bool normalises_experts = false;
  float expert_scale = 0;         // of the weights of a row's experts; 0: 1
  float yarn_log_multiplier = 0;  // scores grow by the square of one plus this times the logarithm of YaRN's factor

  bool own_head_norms = false;  // each head of queries and keys is normalised with weights of its own (Command R+)

  [[nodiscard]] std::uint32_t rotated() const { return rotary_dim == 0 ? head_dim : rotary_dim; }
  /// Rotated pairs are neighbours in a head, and half a head apart in folders of the Hugging Face hub.
  [[nodiscard]] bool moves_pairs() const { return architecture == "llama" || architecture.starts_with("granite"); }
  [[nodiscard]] bool has_head_norms() const {
    return architecture == "qwen3" || architecture == "qwen3moe" || architecture == "gemma3";
  }
  [[nodiscard]] bool has_qkv_biases() const {
    return architecture == "qwen2" || architecture == "qwen2moe" || architecture == "starcoder2" || is_gpt_oss();
  }
  /// All queries of a row are normalised together, and all keys; what a layer's halves read is not normalised.
  [[nodiscard]] bool is_olmo2() const { return architecture == "olmo2"; }
  /// What a layer's halves give is normalised before it is added.
  [[nodiscard]] bool has_post_norms() const {
    return architecture == "gemma2" || architecture == "gemma3" || is_olmo2() || is_glm4();
  }
  /// Embeddings are multiplied by the root of the width, norms by one plus a trained weight.
  [[nodiscard]] bool is_gemma() const { return architecture.starts_with("gemma"); }
  [[nodiscard]] bool is_gpt_oss() const { return architecture == "gpt-oss"; }
  /// Q, K and V are one tensor.
  [[nodiscard]] bool has_fused_qkv() const { return architecture == "phi3"; }
  [[nodiscard]] bool is_deepseek2() const { return architecture == "deepseek2"; }
  /// Of a head's key, what does not rotate.
  [[nodiscard]] std::uint32_t plain_dim() const { return head_dim - rotated(); }
  /// Numbers that attention's output product reads.
  [[nodiscard]] std::uint64_t attended_width() const {
    return std::uint64_t{heads} * (is_deepseek2() ? value_dim : head_dim);
  }
  [[nodiscard]] bool is_mixture(std::uint32_t layer) const { return experts != 0 && layer >= dense_layers; }
  /// Gate and up are one tensor.
  [[nodiscard]] bool has_fused_gate() const { return architecture == "phi3" || is_glm4(); }
  [[nodiscard]] bool is_glm4() const { return architecture == "glm4"; }
  /// Both halves of a layer read one norm.
  [[nodiscard]] bool is_command_r() const { return architecture == "command-r"; }
  [[nodiscard]] bool has_layer_norms() const { return has_norm_shifts() || is_command_r(); }
  [[nodiscard]] bool has_norm_shifts() const { return architecture == "starcoder2"; }
};

/// Refuses what would make a file that no reader takes; the failure says which size.
result<void> check(const decoder_shape& shape);

/// general.architecture and the keys below "<architecture>.".
void put_shape(const decoder_shape& shape, gguf_writer& to);

}  // namespace redline::gguf
