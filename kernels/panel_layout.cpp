#include "kernels/panel_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/grid_blocks.hpp"
#include "kernels/half_floats.hpp"

namespace redline::kernels {
namespace {

using std::byte;

void put(byte* to, const byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

std::uint32_t word_at(const byte* from) {
  std::uint32_t word;
  std::memcpy(&word, from, 4);
  return word;
}
void put_word(byte* words, std::size_t lane, std::uint32_t word) { std::memcpy(words + lane * 4, &word, 4); }

unsigned number(byte b) { return std::to_integer<unsigned>(b); }

// A word has bit_of_column's order, so the integers of four columns, which are in four consecutive bytes, move to their
// positions together.

constexpr std::uint32_t low_nibbles = 0x0f0f0f0f;

/// Packs eight columns: the low halves of eight bytes.
std::uint32_t word_of_low(const byte* from) {
  return (word_at(from) & low_nibbles) | (word_at(from + 4) & low_nibbles) << 4;
}
/// Packs the high halves of eight bytes.
std::uint32_t word_of_high(const byte* from) {
  return (word_at(from) >> 4 & low_nibbles) | (word_at(from + 4) & ~low_nibbles);
}
/// Packs sixteen columns: bits `shift` and `shift` + 1 of sixteen bytes.
std::uint32_t word_of_pairs(const byte* from, unsigned shift) {
  std::uint32_t word = 0;
  for (unsigned four = 0; four < 4; ++four) word |= (word_at(from + four * 4) >> shift & 0x03030303U) << 2 * four;
  return word;
}
/// Packs thirty-two columns: bit `shift` of as many bytes.
std::uint32_t word_of_bits(const byte* from, unsigned shift) {
  std::uint32_t word = 0;
  for (unsigned four = 0; four < 8; ++four) word |= (word_at(from + four * 4) >> shift & 0x01010101U) << four;
  return word;
}
/// Packs thirty-two columns: the bits of a word, with the first column in the lowest.
std::uint32_t word_of_row(std::uint32_t bits) {
  std::uint32_t word = 0;
  for (unsigned column = 0; column < 4; ++column) {
    std::uint32_t every_fourth = bits >> column & 0x11111111U;
    every_fourth = (every_fourth | every_fourth >> 3) & 0x03030303U;
    every_fourth = (every_fourth | every_fourth >> 6) & 0x000f000fU;
    every_fourth = (every_fourth | every_fourth >> 12) & 0xffU;
    word |= every_fourth << 8 * column;
  }
  return word;
}

/// The file stores column i in the low half of byte i and column i + 16 in its high half.
void place_32_nibbles(const byte* from, byte* nibbles, std::size_t lane) {
  for (std::size_t word = 0; word < 2; ++word) {
    put_word(nibbles + word * layout::words_bytes, lane, word_of_low(from + 8 * word));
    put_word(nibbles + (2 + word) * layout::words_bytes, lane, word_of_high(from + 8 * word));
  }
}

template<std::size_t Bytes>
void place_plain(const byte* block, byte* unit, std::size_t lane) {
  put(unit + lane * Bytes, block, Bytes);
}

void place_q8_0(const byte* block, byte* unit, std::size_t lane) {
  put(unit + lane * 2, block, 2);
  for (std::size_t i = 0; i < 32; i += 4) put(unit + 32 + i * 16 + lane * 4, block + 2 + i, 4);
}

template<bool Minimum, bool Fifth>
void place_q45(const byte* block, byte* unit, std::size_t lane) {
  put(unit + lane * 2, block, 2);
  block += 2;
  unit += 32;
  if constexpr (Minimum) {
    put(unit + lane * 2, block, 2);
    block += 2;
    unit += 32;
  }
  if constexpr (Fifth) {
    put_word(unit, lane, word_of_row(word_at(block)));
    block += 4;
    unit += layout::words_bytes;
  }
  place_32_nibbles(block, unit, lane);
}

/// Group g's 6-bit scale and minimum from the 12 packed bytes: the first four groups are stored directly; the last four
/// are split into a nibble and two bits that the first four left free.
std::array<unsigned, 2> scale_and_minimum(const byte* packed, std::size_t g) {
  if (g < 4) return {number(packed[g]) & 63, number(packed[g + 4]) & 63};
  return {(number(packed[g + 4]) & 15) | number(packed[g - 4]) >> 6 << 4,
          number(packed[g + 4]) >> 4 | number(packed[g]) >> 6 << 4};
}

template<bool Fifth>
void place_q45_k(const byte* block, byte* unit, std::size_t lane) {
  put(unit + lane * 2, block, 2);
  put(unit + 32 + lane * 2, block + 2, 2);
  for (std::size_t g = 0; g < 8; ++g) {
    const auto [scale, minimum] = scale_and_minimum(block + 4, g);
    unit[64 + g * 32 + lane] = static_cast<byte>(scale);
    unit[64 + g * 32 + 16 + lane] = static_cast<byte>(minimum);
  }
  byte* nibbles = unit + 64 + 8 * 32;
  byte* fifth = nibbles + 32 * layout::words_bytes;
  const byte* high = block + 16;
  const byte* low = Fifth ? block + 16 + 32 : block + 16;
  for (unsigned g = 0; g < 8; ++g) {  // 64 columns share 32 bytes: their first half in the low nibbles
    const byte* from = low + g / 2 * 32;
    for (std::size_t word = 0; word < 4; ++word, from += 8) {
      put_word(nibbles + (g * 4 + word) * layout::words_bytes, lane,
               g % 2 == 0 ? word_of_low(from) : word_of_high(from));
    }
    if constexpr (Fifth) put_word(fifth + g * layout::words_bytes, lane, word_of_bits(high, g));
  }
}

/// Each half of 128 columns has 32 bytes, with one quarter per two bits, from the low bits up.
void place_pairs(const byte* from, byte* pairs, std::size_t lane) {
  for (std::size_t word = 0; word < 16; ++word) {
    put_word(pairs + word * layout::words_bytes, lane,
             word_of_pairs(from + word / 8 * 32 + word % 2 * 16, static_cast<unsigned>(word % 8 / 2 * 2)));
  }
}

void place_q6_k(const byte* block, byte* unit, std::size_t lane) {
  const byte* low = block;
  const byte* high = block + 128;
  const byte* scales = block + 192;
  put(unit + lane * 2, block + 208, 2);
  for (std::size_t g = 0; g < 16; ++g) unit[64 + g * 16 + lane] = scales[g];
  byte* nibbles = unit + 64 + 16 * 16;
  byte* pairs = nibbles + 32 * layout::words_bytes;
  for (std::size_t word = 0; word < 32; ++word) {  // each half of 128 columns: 64 bytes of nibbles
    const byte* from = low + word / 16 * 64 + word % 8 * 8;
    put_word(nibbles + word * layout::words_bytes, lane, word / 8 % 2 == 0 ? word_of_low(from) : word_of_high(from));
  }
  place_pairs(high, pairs, lane);
}

void place_q2_k(const byte* block, byte* unit, std::size_t lane) {
  put(unit + lane * 2, block + 80, 2);
  put(unit + 32 + lane * 2, block + 82, 2);
  for (std::size_t g = 0; g < 16; ++g) unit[64 + g * 16 + lane] = block[g];
  place_pairs(block + 16, unit + 64 + 16 * 16, lane);
}

void place_q3_k(const byte* block, byte* unit, std::size_t lane) {
  const byte* scales = block + 96;
  put(unit + lane * 2, block + 108, 2);
  for (std::size_t g = 0; g < 16; ++g) {
    const unsigned low = number(scales[g % 8]) >> g / 8 * 4 & 15;
    const unsigned high = number(scales[8 + g % 4]) >> g / 4 * 2 & 3;
    unit[64 + g * 16 + lane] = static_cast<byte>(static_cast<int>(low | high << 4) - 32);
  }
  byte* pairs = unit + 64 + 16 * 16;
  byte* thirds = pairs + 16 * layout::words_bytes;
  place_pairs(block + 32, pairs, lane);
  for (unsigned word = 0; word < 8; ++word) {
    put_word(thirds + word * layout::words_bytes, lane, word_of_bits(block, word));
  }
}

void put_float(float d, byte* unit, std::size_t lane) { std::memcpy(unit + lane * 4, &d, 4); }

void place_iq4_xs(const byte* block, byte* unit, std::size_t lane) {
  std::uint16_t d;
  std::memcpy(&d, block, 2);
  put_float(widen_f16(d), unit, lane);
  byte* nibbles = unit + 64 + 8 * 16;
  for (std::size_t g = 0; g < 8; ++g) {
    const unsigned low = number(block[4 + g / 2]) >> g % 2 * 4 & 15;
    const unsigned high = number(block[2 + g / 4]) >> g % 4 * 2 & 3;
    unit[64 + g * 16 + lane] = static_cast<byte>(static_cast<int>(low | high << 4) - 32);
    place_32_nibbles(block + 8 + g * 16, nibbles + g * 4 * layout::words_bytes, lane);
  }
}

void place_mxfp4(const byte* block, byte* unit, std::size_t lane) {
  // 2^(e - 128) as the upper half of a float; denormal if e is 0 or 1.
  const unsigned e = number(block[0]);
  const auto d = static_cast<std::uint16_t>(e == 255 ? 0x7fc0U : e > 1 ? (e - 1) << 7 : 0x20U << e);
  std::memcpy(unit + lane * 2, &d, 2);
  place_32_nibbles(block + 1, unit + 32, lane);
}

/// Steps of four bits, with 32 weights per scale.
template<weight_type Type>
void place_grid_nibbles(const byte* block, byte* unit, std::size_t lane) {
  grid_block b;
  read_grid_block(Type, block, b);
  put_float(b.d, unit, lane);
  for (std::size_t g = 0; g < 8; ++g) unit[64 + g * 16 + lane] = static_cast<byte>(b.scales[2 * g]);
  byte* nibbles = unit + 64 + 8 * 16;
  const auto* steps = reinterpret_cast<const byte*>(&b.steps[0]);
  for (std::size_t w = 0; w < 32; ++w) put_word(nibbles + w * layout::words_bytes, lane, word_of_low(steps + 8 * w));
}

/// Steps of three bits, with 16 or 32 weights per scale.
template<weight_type Type, std::size_t Groups>
void place_grid_threes(const byte* block, byte* unit, std::size_t lane) {
  grid_block b;
  read_grid_block(Type, block, b);
  put_float(b.d, unit, lane);
  for (std::size_t g = 0; g < Groups; ++g) unit[64 + g * 16 + lane] = static_cast<byte>(b.scales[g * 16 / Groups]);
  byte* pairs = unit + 64 + Groups * 16;
  byte* thirds = pairs + 16 * layout::words_bytes;
  const auto* steps = reinterpret_cast<const byte*>(&b.steps[0]);
  for (std::size_t w = 0; w < 16; ++w)
    put_word(pairs + w * layout::words_bytes, lane, word_of_pairs(steps + 16 * w, 0));
  for (std::size_t w = 0; w < 8; ++w) put_word(thirds + w * layout::words_bytes, lane, word_of_bits(steps + 32 * w, 2));
}

/// place: writes one block into one row of a unit. Inlined, because a block may be a single number.
template<auto place>
void interleave(weight_type type, const byte* source, std::size_t rows, std::size_t columns, std::size_t begin,
                std::size_t end, byte* out) {
  const std::size_t units = columns / block_columns(type);
  const std::size_t bytes = layout::unit_bytes(type);
  for (std::size_t panel = begin; panel < end; ++panel) {
    byte* to = out + panel * units * bytes;
    const std::size_t lanes = std::min(panel_rows, rows - panel * panel_rows);
    const std::size_t stride = row_bytes(type, columns);
    const byte* block = source + panel * panel_rows * stride;
    for (std::size_t u = 0; u < units; ++u, to += bytes, block += block_bytes(type)) {
      std::fill_n(to, bytes, byte{0});  // missing rows, and padding
      for (std::size_t lane = 0; lane < lanes; ++lane) place(block + lane * stride, to, lane);
    }
  }
}

using interleave_function = void (*)(weight_type type, const byte* source, std::size_t rows, std::size_t columns,
                                     std::size_t begin, std::size_t end, byte* out);

interleave_function interleaver_of(weight_type type) {
  switch (type) {
    case weight_type::f32:
      return interleave<place_plain<4>>;
    case weight_type::f16:
    case weight_type::bf16:
      return interleave<place_plain<2>>;
    case weight_type::q8_0:
      return interleave<place_q8_0>;
    case weight_type::q4_0:
      return interleave<place_q45<false, false>>;
    case weight_type::q4_1:
      return interleave<place_q45<true, false>>;
    case weight_type::q5_0:
      return interleave<place_q45<false, true>>;
    case weight_type::q5_1:
      return interleave<place_q45<true, true>>;
    case weight_type::q4_k:
      return interleave<place_q45_k<false>>;
    case weight_type::q5_k:
      return interleave<place_q45_k<true>>;
    case weight_type::q6_k:
      return interleave<place_q6_k>;
    case weight_type::q2_k:
      return interleave<place_q2_k>;
    case weight_type::q3_k:
      return interleave<place_q3_k>;
    case weight_type::iq4_nl:
      return interleave<place_q45<false, false>>;
    case weight_type::iq4_xs:
      return interleave<place_iq4_xs>;
    case weight_type::mxfp4:
      return interleave<place_mxfp4>;
    case weight_type::iq2_xxs:
      return interleave<place_grid_threes<weight_type::iq2_xxs, 8>>;
    case weight_type::iq2_xs:
      return interleave<place_grid_threes<weight_type::iq2_xs, 16>>;
    case weight_type::iq2_s:
      return interleave<place_grid_threes<weight_type::iq2_s, 16>>;
    case weight_type::iq3_xxs:
      return interleave<place_grid_nibbles<weight_type::iq3_xxs>>;
    case weight_type::iq3_s:
      return interleave<place_grid_nibbles<weight_type::iq3_s>>;
    case weight_type::iq1_s:
      return interleave<place_grid_threes<weight_type::iq1_s, 8>>;
    case weight_type::iq1_m:
      return interleave<place_grid_threes<weight_type::iq1_m, 16>>;
  }
  return nullptr;
}

}  // namespace

std::size_t interleaved_panel_bytes(weight_type type, std::size_t columns) {
  return columns / block_columns(type) * layout::unit_bytes(type);
}

void interleave_panels(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns,
                       std::size_t begin, std::size_t end, std::byte* out) {
  interleaver_of(type)(type, source, rows, columns, begin, end, out);
}

}  // namespace redline::kernels
