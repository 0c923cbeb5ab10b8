// Standard headers precede the target: their code is shared with the whole program and must run on every CPU.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/targets/tables.hpp"

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512fp16,avx2,fma,f16c,bmi,bmi2")
namespace redline::kernels::avx512fp16 {
namespace {
// Converts two dimensions of sixteen tokens to sixteen complex numbers in one register, and back.
inline __m512i pair_order() {
  return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19,
                          3, 18, 2, 17, 1, 16, 0);
}
inline __m512i row_order() {
  return _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28, 26, 24, 22, 20, 18, 16, 14,
                          12, 10, 8, 6, 4, 2, 0);
}

/// (a + ib) * (cos + i sin) in half precision: each part is two roundings, of a product and of the sum.
inline __m512i turn(__m512i a_then_b, __m512h angle) {
  const __m512h numbers = _mm512_castsi512_ph(_mm512_permutexvar_epi16(pair_order(), a_then_b));
  return _mm512_permutexvar_epi16(row_order(), _mm512_castph_si512(_mm512_fmul_pch(numbers, angle)));
}

void rotate_keys(const kv_view& kv, std::size_t first_slot, std::size_t count, rope_pairs pairs, rope_angles angles,
                 std::size_t rotary_dim, std::size_t head_dim) {
  if (kv.type != element_type::f16) {
    avx512_table().rotate_keys(kv, first_slot, count, pairs, angles, rotary_dim, head_dim);
    return;
  }
  const std::size_t half = rotary_dim / 2;
  while (count > 0) {
    const std::size_t begin = first_slot % tile_tokens;
    const std::size_t in_tile = std::min(count, tile_tokens - begin);
    const auto lanes = static_cast<__mmask16>(((1U << in_tile) - 1) << begin);
    auto* tile = reinterpret_cast<std::uint16_t*>(key_tile(kv, first_slot, head_dim));
    for (std::size_t i = 0; i < half; ++i) {
      const bool split = pairs == rope_pairs::half_split;
      std::uint16_t* row_a = tile + (split ? i : 2 * i) * tile_tokens;
      std::uint16_t* row_b = tile + (split ? half + i : 2 * i + 1) * tile_tokens;
      const std::uint32_t cosine = _cvtss_sh(angles[i], _MM_FROUND_TO_NEAREST_INT);
      const std::uint32_t sine = _cvtss_sh(angles[half + i], _MM_FROUND_TO_NEAREST_INT);
      const __m512h angle = _mm512_castsi512_ph(_mm512_set1_epi32(static_cast<int>(sine << 16 | cosine)));
      const __m512i both =
          _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row_a))),
                             _mm256_loadu_si256(reinterpret_cast<const __m256i*>(row_b)), 1);
      const __m512i turned = turn(both, angle);
      _mm256_mask_storeu_epi16(row_a, lanes, _mm512_castsi512_si256(turned));
      _mm256_mask_storeu_epi16(row_b, lanes, _mm512_extracti64x4_epi64(turned, 1));
    }
    first_slot += in_tile;
    count -= in_tile;
  }
}
}  // namespace
}  // namespace redline::kernels::avx512fp16
#pragma GCC pop_options

namespace redline::kernels {
const kernel_table& avx512fp16_table() {
  static const kernel_table table = [] {
    kernel_table t = avx512_table();
    t.name = "avx512fp16";
    t.rotate_keys = avx512fp16::rotate_keys;
    return t;
  }();
  return table;
}
}  // namespace redline::kernels
