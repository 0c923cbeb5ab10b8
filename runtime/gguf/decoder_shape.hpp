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

  [[nodiscard]] bool has_layer_norms() const { return architecture == "starcoder2"; }
};

/// Refuses what would make a file that no reader takes; the failure says which size.
result<void> check(const decoder_shape& shape);

/// general.architecture and the keys below "<architecture>.".
void put_shape(const decoder_shape& shape, gguf_writer& to);

}  // namespace redline::gguf
