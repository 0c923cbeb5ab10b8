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

/// Adds `bits` at bit position `shift` of word `lane`.
void add_bits(byte* words, std::size_t lane, unsigned bits, unsigned shift) {
  std::uint32_t word;
  std::memcpy(&word, words + lane * 4, 4);
  word |= std::uint32_t{bits} << shift;
  std::memcpy(words + lane * 4, &word, 4);
}

unsigned number(byte b) { return std::to_integer<unsigned>(b); }

/// Nibble `q` of column i.
void add_nibble(byte* nibbles, std::size_t lane, std::size_t i, unsigned q) {
  add_bits(nibbles + i / 8 * layout::words_bytes, lane, q, layout::bit_of_column(i, 4));
}

/// The file keeps column i in the low half of byte i and column i + 16 in its high half.
void place_32_nibbles(const byte* from, byte* nibbles, std::size_t lane) {
  for (std::size_t i = 0; i < 16; ++i) {
    add_nibble(nibbles, lane, i, number(from[i]) & 15);
    add_nibble(nibbles, lane, i + 16, number(from[i]) >> 4);
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
    for (std::size_t i = 0; i < 32; ++i) {
      add_bits(unit, lane, number(block[i / 8]) >> i % 8 & 1, layout::bit_of_column(i, 1));
    }
    block += 4;
    unit += layout::words_bytes;
  }
  place_32_nibbles(block, unit, lane);
}

/// Group g's 6-bit scale and minimum out of the 12 packed bytes: the first four groups lie plainly, the last four are
/// cut into a nibble and two bits that the first four left free.
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
  for (std::size_t i = 0; i < 256; ++i) {  // 64 columns share 32 bytes: their first half in the low nibbles
    const std::size_t g = i / 32;
    const unsigned pair = number(low[i / 64 * 32 + i % 32]);
    add_nibble(nibbles, lane, i, g % 2 == 0 ? pair & 15 : pair >> 4);
    if constexpr (Fifth) {
      add_bits(fifth + g * layout::words_bytes, lane, number(high[i % 32]) >> g & 1, layout::bit_of_column(i, 1));
    }
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
  for (std::size_t i = 0; i < 256; ++i) {  // each half of 128 columns: 64 bytes of nibbles, 32 bytes of bit pairs
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const unsigned two = number(low[half * 64 + i % 64]);
    add_nibble(nibbles, lane, i, quarter < 2 ? two & 15 : two >> 4);
    const unsigned upper = number(high[half * 32 + i % 32]) >> 2 * quarter & 3;
    add_bits(pairs + i / 16 * layout::words_bytes, lane, upper, layout::bit_of_column(i, 2));
  }
}

/// Weight i's pair of bits: each half of 128 columns has 32 bytes, a quarter of it at a time from the low bits up.
void place_pairs(const byte* from, byte* pairs, std::size_t lane) {
  for (std::size_t i = 0; i < 256; ++i) {
    const unsigned pair = number(from[i / 128 * 32 + i % 32]) >> i % 128 / 32 * 2 & 3;
    add_bits(pairs + i / 16 * layout::words_bytes, lane, pair, layout::bit_of_column(i, 2));
  }
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
  for (std::size_t i = 0; i < 256; ++i) {
    const unsigned third = number(block[i % 32]) >> i / 32 & 1;
    add_bits(thirds + i / 32 * layout::words_bytes, lane, third, layout::bit_of_column(i, 1));
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
  // 2^(e - 128) as the upper half of a float: denormal where e is 0 or 1.
  const unsigned e = number(block[0]);
  const auto d = static_cast<std::uint16_t>(e == 255 ? 0x7fc0U : e > 1 ? (e - 1) << 7 : 0x20U << e);
  std::memcpy(unit + lane * 2, &d, 2);
  place_32_nibbles(block + 1, unit + 32, lane);
}

/// Steps of four bits, 32 weights to a scale.
template<weight_type Type>
void place_grid_nibbles(const byte* block, byte* unit, std::size_t lane) {
  grid_block b;
  read_grid_block(Type, block, b);
  put_float(b.d, unit, lane);
  for (std::size_t g = 0; g < 8; ++g) unit[64 + g * 16 + lane] = static_cast<byte>(b.scales[2 * g]);
  byte* nibbles = unit + 64 + 8 * 16;
  for (std::size_t i = 0; i < 256; ++i) add_nibble(nibbles, lane, i, b.steps[i]);
}

/// Steps of three bits, 16 or 32 weights to a scale.
template<weight_type Type, std::size_t Groups>
void place_grid_threes(const byte* block, byte* unit, std::size_t lane) {
  grid_block b;
  read_grid_block(Type, block, b);
  put_float(b.d, unit, lane);
  for (std::size_t g = 0; g < Groups; ++g) unit[64 + g * 16 + lane] = static_cast<byte>(b.scales[g * 16 / Groups]);
  byte* pairs = unit + 64 + Groups * 16;
  byte* thirds = pairs + 16 * layout::words_bytes;
  for (std::size_t i = 0; i < 256; ++i) {
    add_bits(pairs + i / 16 * layout::words_bytes, lane, b.steps[i] & 3U, layout::bit_of_column(i, 2));
    add_bits(thirds + i / 32 * layout::words_bytes, lane, b.steps[i] >> 2U, layout::bit_of_column(i, 1));
  }
}

using place_function = void (*)(const byte* block, byte* unit, std::size_t lane);

place_function placer_of(weight_type type) {
  switch (type) {
    case weight_type::f32:
      return place_plain<4>;
    case weight_type::f16:
    case weight_type::bf16:
      return place_plain<2>;
    case weight_type::q8_0:
      return place_q8_0;
    case weight_type::q4_0:
      return place_q45<false, false>;
    case weight_type::q4_1:
      return place_q45<true, false>;
    case weight_type::q5_0:
      return place_q45<false, true>;
    case weight_type::q5_1:
      return place_q45<true, true>;
    case weight_type::q4_k:
      return place_q45_k<false>;
    case weight_type::q5_k:
      return place_q45_k<true>;
    case weight_type::q6_k:
      return place_q6_k;
    case weight_type::q2_k:
      return place_q2_k;
    case weight_type::q3_k:
      return place_q3_k;
    case weight_type::iq4_nl:
      return place_q45<false, false>;
    case weight_type::iq4_xs:
      return place_iq4_xs;
    case weight_type::mxfp4:
      return place_mxfp4;
    case weight_type::iq2_xxs:
      return place_grid_threes<weight_type::iq2_xxs, 8>;
    case weight_type::iq2_xs:
      return place_grid_threes<weight_type::iq2_xs, 16>;
    case weight_type::iq2_s:
      return place_grid_threes<weight_type::iq2_s, 16>;
    case weight_type::iq3_xxs:
      return place_grid_nibbles<weight_type::iq3_xxs>;
    case weight_type::iq3_s:
      return place_grid_nibbles<weight_type::iq3_s>;
    case weight_type::iq1_s:
      return place_grid_threes<weight_type::iq1_s, 8>;
    case weight_type::iq1_m:
      return place_grid_threes<weight_type::iq1_m, 16>;
  }
  return nullptr;
}

}  // namespace

std::size_t interleaved_panel_bytes(weight_type type, std::size_t columns) {
  return columns / block_columns(type) * layout::unit_bytes(type);
}

void interleave_panels(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns,
                       std::size_t begin, std::size_t end, std::byte* out) {
  const place_function place = placer_of(type);
  const std::size_t units = columns / block_columns(type);
  const std::size_t bytes = layout::unit_bytes(type);
  for (std::size_t panel = begin; panel < end; ++panel) {
    byte* to = out + panel * units * bytes;
    std::fill_n(to, units * bytes, byte{0});
    const std::size_t lanes = std::min(panel_rows, rows - panel * panel_rows);
    for (std::size_t u = 0; u < units; ++u) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const byte* block = source + (panel * panel_rows + lane) * row_bytes(type, columns) + u * block_bytes(type);
        place(block, to + u * bytes, lane);
      }
    }
  }
}

}  // namespace redline::kernels
