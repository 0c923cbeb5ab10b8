// The vector verbs, sixteen lanes in two registers. Semantics: vec_scalar.inl.hpp.

struct f32x16 {
  __m256 lo;
  __m256 hi;
};

// 6 rows x 1 panel use 12 accumulators, 2 weights and a broadcast in 16 registers.
inline constexpr int gemm_rows_max = 6;
inline constexpr int gemm_accumulators = 6;
inline constexpr int fused_panels = 2;

inline f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline f32x16 load_n(const float* p, std::size_t n) {
  alignas(32) float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store(float* p, f32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline void store_n(float* p, f32x16 a, std::size_t n) {
  alignas(32) float lanes[16];
  store(lanes, a);
  for (std::size_t i = 0; i < n; ++i) p[i] = lanes[i];
}
inline f32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline f32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline f32x16 add(f32x16 a, f32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline f32x16 sub(f32x16 a, f32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline f32x16 mul(f32x16 a, f32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline f32x16 div(f32x16 a, f32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline f32x16 max(f32x16 a, f32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline f32x16 min(f32x16 a, f32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }

inline float sum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(f32x16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline __m256 scale_exponent_half(__m256 p, __m256 t) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_castps_si256(t), 23)));
}
inline f32x16 scale_exponent(f32x16 p, f32x16 t) {
  return {scale_exponent_half(p.lo, t.lo), scale_exponent_half(p.hi, t.hi)};
}

inline __m256 one_nan_half(__m256 a) {
  return _mm256_blendv_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)), _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
inline f32x16 one_nan(f32x16 a) { return {one_nan_half(a.lo), one_nan_half(a.hi)}; }

inline __m128i load_half(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline f32x16 load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(load_half(p)), _mm256_cvtph_ps(load_half(p + 8))};
}
inline __m256 widen_bf16_half(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline f32x16 load_bf16(const std::uint16_t* p) {
  return {widen_bf16_half(load_half(p)), widen_bf16_half(load_half(p + 8))};
}
inline f32x16 load_i8(const std::int8_t* p) {
  const __m128i bytes = load_half(p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline f32x16 load_u8(const std::uint8_t* p) {
  const __m128i bytes = load_half(p);
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline f32x16 load_low_u4(const std::uint8_t* p) {
  const __m128i bytes = _mm_and_si128(load_half(p), _mm_set1_epi8(15));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
inline f32x16 load_high_u4(const std::uint8_t* p) {
  const __m128i bytes = _mm_and_si128(_mm_srli_epi16(load_half(p), 4), _mm_set1_epi8(15));
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}

struct words16 {
  __m256i lo;
  __m256i hi;
};
inline words16 load_words(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
template<int Shift, int Mask>
inline __m256i bits_of(__m256i w) {
  return _mm256_and_si256(Shift == 0 ? w : _mm256_srli_epi32(w, Shift), _mm256_set1_epi32(Mask));
}
/// Bits [Shift, Shift + popcount(Mask)) of each word, moved to bit 4.
template<int Shift, int Mask>
inline __m256i upper_bits(__m256i w) {
  if constexpr (Shift >= 4) {
    return _mm256_and_si256(_mm256_srli_epi32(w, Shift - 4), _mm256_set1_epi32(Mask << 4));
  } else {
    return _mm256_and_si256(_mm256_slli_epi32(w, 4 - Shift), _mm256_set1_epi32(Mask << 4));
  }
}
template<int Offset>
inline __m256 float_less(__m256i q) {
  const __m256 f = _mm256_cvtepi32_ps(q);
  return Offset == 0 ? f : _mm256_sub_ps(f, _mm256_set1_ps(Offset));
}
template<int J, int Offset>
inline f32x16 nibble(words16 w) {
  return {float_less<Offset>(bits_of<4 * J, 15>(w.lo)), float_less<Offset>(bits_of<4 * J, 15>(w.hi))};
}
template<int J, int Shift, int Mask, int Offset>
inline f32x16 nibble_and_upper(words16 low, words16 high) {
  return {float_less<Offset>(_mm256_or_si256(bits_of<4 * J, 15>(low.lo), upper_bits<Shift, Mask>(high.lo))),
          float_less<Offset>(_mm256_or_si256(bits_of<4 * J, 15>(low.hi), upper_bits<Shift, Mask>(high.hi)))};
}
template<int J, int H, int Offset>
inline f32x16 five_bits(words16 low, words16 high) {
  return nibble_and_upper<J, H, 1, Offset>(low, high);
}
template<int J, int H, int Offset>
inline f32x16 six_bits(words16 low, words16 high) {
  return nibble_and_upper<J, 2 * H, 3, Offset>(low, high);
}
template<int J>
inline f32x16 two_bits(words16 w) {
  return {float_less<0>(bits_of<2 * J, 3>(w.lo)), float_less<0>(bits_of<2 * J, 3>(w.hi))};
}
/// Bit H of each word, moved to bit 2.
template<int H>
inline __m256i third_bit(__m256i w) {
  return _mm256_and_si256(H >= 2 ? _mm256_srli_epi32(w, H >= 2 ? H - 2 : 0) : _mm256_slli_epi32(w, H >= 2 ? 0 : 2 - H),
                          _mm256_set1_epi32(4));
}
template<int J, int H, int Offset>
inline f32x16 three_bits(words16 low, words16 high) {
  return {float_less<Offset>(_mm256_or_si256(bits_of<2 * J, 3>(low.lo), third_bit<H>(high.lo))),
          float_less<Offset>(_mm256_or_si256(bits_of<2 * J, 3>(low.hi), third_bit<H>(high.hi)))};
}
/// Two lookups by three bits; the fourth bit, moved to the sign, selects one.
template<int J, class Numbers>
inline __m256 eight_of_table(__m256i w) {
  constexpr auto& n = Numbers::values;
  const __m256i index = J == 0 ? w : _mm256_srli_epi32(w, 4 * J);
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_setr_ps(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]), index);
  const __m256 high =
      _mm256_permutevar8x32_ps(_mm256_setr_ps(n[8], n[9], n[10], n[11], n[12], n[13], n[14], n[15]), index);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(index, 28)));
}
template<int J, class Numbers>
inline f32x16 nibble_of_table(words16 w) {
  return {eight_of_table<J, Numbers>(w.lo), eight_of_table<J, Numbers>(w.hi)};
}
template<int J, int H, class Numbers>
inline f32x16 three_bits_of_table(words16 low, words16 high) {
  constexpr auto& n = Numbers::values;
  const __m256 values = _mm256_setr_ps(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]);
  const auto look_up = [values](__m256i x, __m256i y) {
    return _mm256_permutevar8x32_ps(values, _mm256_or_si256(bits_of<2 * J, 3>(x), third_bit<H>(y)));
  };
  return {look_up(low.lo, high.lo), look_up(low.hi, high.hi)};
}
inline words16 shifted_right(words16 w, std::size_t bits) {
  const __m128i by = _mm_cvtsi64_si128(static_cast<long long>(bits));
  return {_mm256_srl_epi32(w.lo, by), _mm256_srl_epi32(w.hi, by)};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
inline __m256i narrow_bf16_half(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
}
inline void store_bf16(std::uint16_t* p, f32x16 a) {
  // The pack works within 128-bit halves; the permutation restores the order of the quarters.
  const __m256i packed = _mm256_packus_epi32(narrow_bf16_half(a.lo), narrow_bf16_half(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }
inline void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }
