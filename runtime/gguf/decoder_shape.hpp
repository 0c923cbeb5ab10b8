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

  // Granite's; 0: as other families have it.
  float embedding_scale = 0;
  float residual_scale = 0;
  float attention_scale = 0;
  float logit_divisor = 0;

  /// Rotated pairs are neighbours in a head.
  [[nodiscard]] bool has_adjacent_pairs() const {
    return architecture == "llama" || architecture.starts_with("granite");
  }
  [[nodiscard]] bool has_head_norms() const { return architecture == "qwen3" || architecture == "qwen3moe"; }
  [[nodiscard]] bool has_qkv_biases() const {
    return architecture == "qwen2" || architecture == "qwen2moe" || architecture == "starcoder2";
  }
  [[nodiscard]] bool has_layer_norms() const { return architecture == "starcoder2"; }
};

/// Refuses what would make a file that no reader takes; the failure says which size.
result<void> check(const decoder_shape& shape);

/// general.architecture and the keys below "<architecture>.".
void put_shape(const decoder_shape& shape, gguf_writer& to);

}  // namespace redline::gguf
