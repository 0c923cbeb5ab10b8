#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redline::kernels {

/// Storage of a weight matrix as in the file. Rows are contiguous sequences of blocks (GGUF's layouts):
/// f32, f16, bf16: plain numbers.
/// q8_0: 32 weights: f16 d, int8[32].                           w = d q
/// q4_0: 32: f16 d, nibbles[16].                                w = d (q - 8)
/// q4_1: 32: f16 d, f16 m, nibbles[16].                         w = d q + m
/// q5_0: 32: f16 d, u32 fifth bits, nibbles[16].                w = d (q - 16)
/// q5_1: 32: f16 d, f16 m, u32 fifth bits, nibbles[16].         w = d q + m
/// q4_k: 256 in 8 groups: f16 d, f16 dmin, 6-bit scales and minima[12], nibbles[128].                w = d s q - dmin m
/// q5_k: likewise, with fifth bits[32] before the nibbles.
/// q6_k: 256 in 16 groups: low nibbles[128], high pairs of bits[64], int8 scales[16], f16 d.         w = d s (q - 32)
/// q2_k: 256 in 16 groups: 4-bit scales and minima[16], pairs of bits[64], f16 d, f16 dmin.          w = d s q - dmin m
/// q3_k: 256 in 16 groups: third bits[32], pairs of bits[64], 6-bit scales[12], f16 d.
///                                                              w = d (s - 32) (q - 4)
///
/// iq4_nl: 32: f16 d, nibbles[16].                              w = d iq4_values[q]
///
/// iq4_xs: 256 in 8 groups: f16 d, high pairs of bits of the scales[2], low nibbles[4], nibbles[128].
///                                                              w = d (s - 32) iq4_values[q]
///
/// mxfp4: 32: u8 e, nibbles[16].                                w = 2^(e - 128) mxfp4_values[q]; NaN where e = 255
///
/// The other types are only read. All have 256 weights, f16 d (iq1_m in four pieces, at the end) and points of a grid
/// (grid_blocks.hpp), selected by an index:
///
/// iq2_xxs: {u8 index[4], u32 of seven signs[4] and a 4-bit scale s}[8].        w = d (2 s + 1) / 8 iq2_values[q]
///
/// iq2_xs: {9 bits of index, 7 signs}[32], 4-bit scales[16].                    likewise
///
/// iq2_s: u8 index[32], signs[32], pairs of upper bits[8], 4-bit scales[16].    likewise
///
/// iq3_xxs: u8 index[64], u32 {seven signs[4], a 4-bit scale}[8].               w = d (2 s + 1) / 4 iq3_xxs_values[q]
///
/// iq3_s: u8 index[64], ninth bits[8], signs[32], 4-bit scales[8].              w = d (2 s + 1) iq3_s_values[q]
///
/// iq1_s: u8 index[32], u16 {three upper bits[4], 3-bit scale, down}[8].        w = d (2 s + 1) / 8 iq1_values[q]
///
/// iq1_m: u8 index[32], {three upper bits, down}[32], 3-bit scales[16].         likewise
///
/// Every product above is exact in a float, so a weight is one well-defined float: at most one rounding, at the sum.
enum class weight_type : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q4_k,
  q5_k,
  q6_k,
  q2_k,
  q3_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  iq2_xxs,
  iq2_xs,
  iq2_s,
  iq3_xxs,
  iq3_s,
  iq1_s,
  iq1_m
};

inline constexpr weight_type all_weight_types[] = {
    weight_type::f32,   weight_type::f16,     weight_type::bf16,   weight_type::q8_0,   weight_type::q4_0,
    weight_type::q4_1,  weight_type::q5_0,    weight_type::q5_1,   weight_type::q4_k,   weight_type::q5_k,
    weight_type::q6_k,  weight_type::q2_k,    weight_type::q3_k,   weight_type::iq4_nl, weight_type::iq4_xs,
    weight_type::mxfp4, weight_type::iq2_xxs, weight_type::iq2_xs, weight_type::iq2_s,  weight_type::iq3_xxs,
    weight_type::iq3_s, weight_type::iq1_s,   weight_type::iq1_m};

/// Whether quantize_row writes the type. To be useful, the others need a search over a whole grid and weights for the
/// importance of each column.
[[nodiscard]] constexpr bool is_written(weight_type type) { return type <= weight_type::mxfp4; }

/// The numbers of the nibbles of iq4_nl and iq4_xs: steps are finer near zero, as weights are.
inline constexpr std::int8_t iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the numbers of FP4 (E2M1) in OCP's Microscaling formats.
inline constexpr std::int8_t mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/// The numbers of the steps of grid_blocks.hpp: a coordinate of a point with the sign above it (iq1: all of the point
/// is shifted down instead of up). Three-bit steps have eight values; the rest is unused.
inline constexpr std::int8_t iq2_values[16] = {8, 25, 43, 0, -8, -25, -43, 0};
inline constexpr std::int8_t iq1_values[16] = {-7, 1, 9, 0, -9, -1, 7, 0};
inline constexpr std::int8_t iq3_xxs_values[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                                   -4, -12, -20, -28, -36, -44, -52, -62};
inline constexpr std::int8_t iq3_s_values[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

/// Weights per block; a row consists of whole blocks.
[[nodiscard]] constexpr std::size_t block_columns(weight_type type) {
  switch (type) {
    case weight_type::f32:
    case weight_type::f16:
    case weight_type::bf16:
      return 1;
    case weight_type::q8_0:
    case weight_type::q4_0:
    case weight_type::q4_1:
    case weight_type::q5_0:
    case weight_type::q5_1:
    case weight_type::iq4_nl:
    case weight_type::mxfp4:
      return 32;
    case weight_type::q4_k:
    case weight_type::q5_k:
    case weight_type::q6_k:
    case weight_type::q2_k:
    case weight_type::q3_k:
    case weight_type::iq4_xs:
    case weight_type::iq2_xxs:
    case weight_type::iq2_xs:
    case weight_type::iq2_s:
    case weight_type::iq3_xxs:
    case weight_type::iq3_s:
    case weight_type::iq1_s:
    case weight_type::iq1_m:
      return 256;
  }
  return 1;
}

[[nodiscard]] constexpr std::size_t block_bytes(weight_type type) {
  switch (type) {
    case weight_type::f32:
      return 4;
    case weight_type::f16:
    case weight_type::bf16:
      return 2;
    case weight_type::q8_0:
      return 34;
    case weight_type::q4_0:
      return 18;
    case weight_type::q4_1:
      return 20;
    case weight_type::q5_0:
      return 22;
    case weight_type::q5_1:
      return 24;
    case weight_type::q4_k:
      return 144;
    case weight_type::q5_k:
      return 176;
    case weight_type::q6_k:
      return 210;
    case weight_type::q2_k:
      return 84;
    case weight_type::q3_k:
      return 110;
    case weight_type::iq4_nl:
      return 18;
    case weight_type::iq4_xs:
      return 136;
    case weight_type::mxfp4:
      return 17;
    case weight_type::iq2_xxs:
      return 66;
    case weight_type::iq2_xs:
      return 74;
    case weight_type::iq2_s:
      return 82;
    case weight_type::iq3_xxs:
      return 98;
    case weight_type::iq3_s:
      return 110;
    case weight_type::iq1_s:
      return 50;
    case weight_type::iq1_m:
      return 56;
  }
  return 0;
}

/// Bytes of one row in the file's layout. columns: a multiple of block_columns(type).
[[nodiscard]] constexpr std::size_t row_bytes(weight_type type, std::size_t columns) {
  return columns / block_columns(type) * block_bytes(type);
}

/// The name that GGUF tools write: "F32", "Q4_K", ...
[[nodiscard]] constexpr std::string_view name_of(weight_type type) {
  constexpr std::string_view names[] = {"F32",     "F16",    "BF16",  "Q8_0",    "Q4_0",  "Q4_1",   "Q5_0",   "Q5_1",
                                        "Q4_K",    "Q5_K",   "Q6_K",  "Q2_K",    "Q3_K",  "IQ4_NL", "IQ4_XS", "MXFP4",
                                        "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S",  "IQ1_M"};
  return names[static_cast<std::size_t>(type)];
}

}  // namespace redline::kernels
