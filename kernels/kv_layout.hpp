#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redline::kernels {

/// Storage of keys and values. q8_0 and i16 are integers of one and two bytes with scales (see README.md on keys and
/// values as integers).
enum class element_type : std::uint8_t { f32, f16, bf16, q8_0, i16 };
inline constexpr std::array all_element_types = {element_type::f32, element_type::f16, element_type::bf16,
                                                 element_type::q8_0, element_type::i16};
[[nodiscard]] constexpr std::string_view name_of(element_type type) {
  constexpr std::string_view names[] = {"f32", "f16", "bf16", "q8_0", "i16"};
  return names[static_cast<std::size_t>(type)];
}
[[nodiscard]] constexpr bool holds_integers(element_type type) {
  return type == element_type::q8_0 || type == element_type::i16;
}
/// The size of one number; for integers without the scale.
[[nodiscard]] constexpr std::size_t bytes_of(element_type type) {
  return type == element_type::f32 ? 4 : type == element_type::q8_0 ? 1 : 2;
}

/// The longest keys and values that kernels support, and the most leading dimensions of a key that rotate.
inline constexpr std::size_t head_dim_max = 1024;
inline constexpr std::size_t rotary_dim_max = 512;

/// Keys are stored in tiles of this many tokens, dimension-major, so that a score tile is one small GEMM panel.
inline constexpr std::size_t tile_tokens = 16;
/// Tokens in one page of KV storage.
inline constexpr std::size_t kv_page_tokens = 32;

[[nodiscard]] constexpr std::size_t round_up(std::size_t n, std::size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// The keys and values of one layer and KV head. Page p begins page_stride_bytes * p after both pointers.
///
/// f32, f16, bf16. keys: [2 tiles][head_dim][16 tokens]. values: [32 tokens][head_dim rounded up to 16].
///
/// q8_0, i16, whose words of 32 bits contain N = 4 bytes or 2 shorts. keys: [2 tiles] of [head_dim / N rounded up][16
/// tokens][N dimensions] signed integers, then a bf16 scale for each [block of integer_key_block dimensions][16
/// tokens], rounded up to 64 bytes. values: [32 / N words of tokens][head_dim rounded up to 16][N tokens] signed
/// integers, then bf16 scales [32 tokens]. place_in_word gives a number's position in a word.
struct kv_view {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
  std::size_t page_stride_bytes = 0;
  element_type type = element_type::f32;
};

/// Dimensions of an integer key that share a scale. Some models have a few dimensions far larger than the others (their
/// keys have a bias); these reduce the precision only of their own block.
inline constexpr std::size_t integer_key_block = 32;
[[nodiscard]] constexpr std::size_t integer_key_blocks(std::size_t head_dim) {
  return (head_dim + integer_key_block - 1) / integer_key_block;
}
/// Integers in a word of 32 bits.
[[nodiscard]] constexpr std::size_t integers_per_word(element_type type) { return 4 / bytes_of(type); }
[[nodiscard]] constexpr std::size_t integer_words(element_type type, std::size_t head_dim) {
  return (head_dim + integers_per_word(type) - 1) / integers_per_word(type);
}
/// Bytes of a key tile before its scales.
[[nodiscard]] constexpr std::size_t tile_integer_bytes(element_type type, std::size_t head_dim) {
  return integer_words(type, head_dim) * tile_tokens * 4;
}
/// The byte of a word where its i-th integer begins. q8_0: the even bytes contain the first two, the odd ones the
/// others, so that shifts by eight bits yield adjacent numbers as 16-bit integers.
[[nodiscard]] constexpr std::size_t place_in_word(element_type type, std::size_t i) {
  constexpr std::array<std::size_t, 4> bytes = {0, 2, 1, 3};
  return type == element_type::q8_0 ? bytes[i] : 2 * i;
}

/// The size of one tile of keys.
[[nodiscard]] constexpr std::size_t kv_tile_bytes(element_type type, std::size_t head_dim) {
  if (!holds_integers(type)) return tile_tokens * head_dim * bytes_of(type);
  return tile_integer_bytes(type, head_dim) +
         round_up(integer_key_blocks(head_dim) * tile_tokens * sizeof(std::uint16_t), 64);
}
/// The bytes of the keys (= offset of the values), and of keys and values, for one layer and KV head in one page.
[[nodiscard]] constexpr std::size_t kv_key_bytes(element_type type, std::size_t head_dim) {
  return kv_page_tokens / tile_tokens * kv_tile_bytes(type, head_dim);
}
[[nodiscard]] constexpr std::size_t kv_head_bytes(element_type type, std::size_t head_dim) {
  const std::size_t scales = holds_integers(type) ? kv_page_tokens * sizeof(std::uint16_t) : 0;
  return round_up(kv_key_bytes(type, head_dim), 64) + kv_page_tokens * round_up(head_dim, 16) * bytes_of(type) + scales;
}

/// The tile of keys that contains a slot.
inline std::byte* key_tile(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.keys + slot / kv_page_tokens * kv.page_stride_bytes +
         slot % kv_page_tokens / tile_tokens * kv_tile_bytes(kv.type, head_dim);
}
/// Not for integer types.
[[nodiscard]] constexpr std::size_t value_row_bytes(element_type type, std::size_t head_dim) {
  return round_up(head_dim, 16) * bytes_of(type);
}
inline std::byte* value_row(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.values + slot / kv_page_tokens * kv.page_stride_bytes +
         slot % kv_page_tokens * value_row_bytes(kv.type, head_dim);
}
/// For integer types: the words that contain a token's values (and those of adjacent tokens), and the token's scale.
inline std::byte* value_words(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.values + slot / kv_page_tokens * kv.page_stride_bytes +
         slot % kv_page_tokens / integers_per_word(kv.type) * round_up(head_dim, 16) * 4;
}
inline std::byte* value_scale(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.values + slot / kv_page_tokens * kv.page_stride_bytes +
         kv_page_tokens * value_row_bytes(kv.type, head_dim) + slot % kv_page_tokens * sizeof(std::uint16_t);
}

/// One slot's key and value as floats: the reference for each storage type, in plain code. out: [head_dim]
void read_key(const kv_view& kv, std::size_t slot, std::size_t head_dim, float* out);
void read_value(const kv_view& kv, std::size_t slot, std::size_t head_dim, float* out);

}  // namespace redline::kernels
