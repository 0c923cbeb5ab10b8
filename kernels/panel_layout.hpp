#pragma once

#include "kernels/kernel_table.hpp"

namespace redline::kernels {

/// The layout of packed weights that the SIMD targets share. A panel is 16 interleaved rows of the matrix: the data of
/// one column is adjacent for all 16 rows, so that one vector load serves 16 outputs. A panel is a sequence of units,
/// each with as many columns as the file's block. Small integers are in 32-bit words, one per row: four columns of
/// bytes, eight of nibbles, sixteen of bit pairs or thirty-two of single bits. Byte b of a word has the columns that
/// are b modulo 4, the first of them in its lowest bits. So one shift and one mask give four columns in order, one per
/// byte, as products of bytes need (VPDPBUSD), and one shift gives a column to convert. Inside a unit, per format:
///
///   f32, f16, bf16   number[16]
///   q8_0             f16 d[16], int8 q[8][16 words]
///   q4_0             f16 d[16], nibbles[4][16 words]
///   q4_1             f16 d[16], f16 m[16], nibbles[4][16 words]
///   q5_0             f16 d[16], fifth bits[16 words], nibbles[4][16 words]
///   q5_1             f16 d[16], f16 m[16], fifth bits[16 words], nibbles[4][16 words]
///   q4_k             f16 d[16], f16 dmin[16], {u8 s[16], u8 m[16]}[8], nibbles[32][16 words]
///   q5_k             likewise, then fifth bits[8][16 words]
///   q6_k             f16 d[16], 32 bytes of padding, i8 s[16 groups][16], nibbles[32][16 words], pairs[16][16 words]
///   q2_k             f16 d[16], f16 dmin[16], u8 (s in the low half, m in the high)[16 groups][16], pairs[16][16
///   words]
///
///   q3_k             f16 d[16], 32 bytes of padding, i8 s[16 groups][16], pairs[16][16 words], third bits[8][16 words]
///
///   iq4_nl           f16 d[16], nibbles[4][16 words]
///
///   iq4_xs, iq3      f32 d[16], i8 s[8 groups][16], nibbles[32][16 words]
///
///   iq2, iq1         f32 d[16], i8 s[8 or 16 groups][16], pairs[16][16 words], third bits[8][16 words]
///
///   mxfp4            bf16 d[16], nibbles[4][16 words]
///
/// Panels of q4_k are 2.8 % larger than the file's blocks, q5_k 2.3 %, q6_k 1 %, q3_k 5.5 %, iq4_xs 2.9 %, mxfp4 5.9 %.
/// iq2, iq3 and iq1 are stored as the steps of grid_blocks.hpp, because looking up whole points for sixteen rows is
/// slower than a product: 3.4 bits per weight for iq2_xxs and iq1_s, 3.6 for iq2_xs, iq2_s and iq1_m, 4.4 for iq3. The
/// others are as large as the file's blocks.
namespace layout {

inline constexpr std::size_t words_bytes = 64;  // one word for each of the 16 rows

/// The lowest bit of column i in its word, for integers of `bits` bits.
[[nodiscard]] constexpr unsigned bit_of_column(std::size_t i, unsigned bits) {
  return static_cast<unsigned>(i % 4 * 8 + i % (32 / bits) / 4 * bits);
}

[[nodiscard]] constexpr std::size_t unit_bytes(weight_type type) {
  switch (type) {
    case weight_type::f32:
    case weight_type::f16:
    case weight_type::bf16:
    case weight_type::q8_0:
    case weight_type::q4_0:
    case weight_type::q4_1:
    case weight_type::q5_0:
    case weight_type::q5_1:
    case weight_type::iq4_nl:
    case weight_type::q2_k:
      return 16 * block_bytes(type);
    case weight_type::q4_k:
      return 64 + 8 * 32 + 32 * words_bytes;
    case weight_type::q5_k:
      return 64 + 8 * 32 + 32 * words_bytes + 8 * words_bytes;
    case weight_type::q6_k:
      return 64 + 16 * 16 + 32 * words_bytes + 16 * words_bytes;
    case weight_type::q3_k:
      return 64 + 16 * 16 + 16 * words_bytes + 8 * words_bytes;
    case weight_type::iq4_xs:
    case weight_type::iq3_xxs:
    case weight_type::iq3_s:
      return 64 + 8 * 16 + 32 * words_bytes;
    case weight_type::iq2_xxs:
    case weight_type::iq1_s:
      return 64 + 8 * 16 + 16 * words_bytes + 8 * words_bytes;
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
    case weight_type::iq1_m:
      return 64 + 16 * 16 + 16 * words_bytes + 8 * words_bytes;
    case weight_type::mxfp4:
      return 32 + 4 * words_bytes;
  }
  return 0;
}

}  // namespace layout

/// Bytes of one panel of a matrix with this many columns (whole blocks).
[[nodiscard]] std::size_t interleaved_panel_bytes(weight_type type, std::size_t columns);

/// Fills panels [begin, end) of `out` from the file's rows. source: [rows, columns]; rows past the end become zeros.
void interleave_panels(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns,
                       std::size_t begin, std::size_t end, std::byte* out);

}  // namespace redline::kernels
