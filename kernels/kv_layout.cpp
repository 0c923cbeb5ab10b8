#include "kernels/kv_layout.hpp"

#include <bit>
#include <cstring>

#include "kernels/half_floats.hpp"

namespace redline::kernels {
namespace {

float read_bf16(const std::byte* at) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof(bits));
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// Reads one number; not for integer types.
float read_number(element_type type, const std::byte* at) {
  if (type == element_type::bf16) return read_bf16(at);
  if (type == element_type::f16) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return widen_f16(bits);
  }
  float x = 0;
  std::memcpy(&x, at, sizeof(x));
  return x;
}

float read_integer(element_type type, const std::byte* at) {
  if (type == element_type::q8_0) return static_cast<float>(static_cast<std::int8_t>(*at));
  std::int16_t x = 0;
  std::memcpy(&x, at, sizeof(x));
  return static_cast<float>(x);
}

}  // namespace

void read_key(const kv_view& kv, std::size_t slot, std::size_t head_dim, float* out) {
  const std::byte* tile = key_tile(kv, slot, head_dim);
  const std::size_t lane = slot % tile_tokens;
  const std::size_t together = integers_per_word(kv.type);
  for (std::size_t d = 0; d < head_dim; ++d) {
    if (holds_integers(kv.type)) {
      const std::byte* scales = tile + tile_integer_bytes(kv.type, head_dim);
      const float scale = read_bf16(scales + (d / integer_key_block * tile_tokens + lane) * sizeof(std::uint16_t));
      const std::byte* word = tile + (d / together * tile_tokens + lane) * 4;
      out[d] = read_integer(kv.type, word + place_in_word(kv.type, d % together)) * scale;
    } else {
      out[d] = read_number(kv.type, tile + (d * tile_tokens + lane) * bytes_of(kv.type));
    }
  }
}

void read_value(const kv_view& kv, std::size_t slot, std::size_t head_dim, float* out) {
  for (std::size_t d = 0; d < head_dim; ++d) {
    if (holds_integers(kv.type)) {
      const std::byte* word = value_words(kv, slot, head_dim) + d * 4;
      const std::size_t place = place_in_word(kv.type, slot % integers_per_word(kv.type));
      out[d] = read_integer(kv.type, word + place) * read_bf16(value_scale(kv, slot, head_dim));
    } else {
      out[d] = read_number(kv.type, value_row(kv, slot, head_dim) + d * bytes_of(kv.type));
    }
  }
}

}  // namespace redline::kernels
