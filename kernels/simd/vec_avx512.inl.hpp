// The vector verbs, sixteen lanes in one register. Semantics: vec_scalar.inl.hpp.

struct f32x16 {
  __m512 v;
};

// 6 rows x 4 panels use 24 accumulators, 4 weights and a broadcast in 32 registers.
inline constexpr int gemm_rows_max = 6;
inline constexpr int gemm_accumulators = 24;
inline constexpr int fused_panels = 4;

inline __mmask16 first_lanes(std::size_t n) { return static_cast<__mmask16>((1U << n) - 1); }

inline f32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline f32x16 load_n(const float* p, std::size_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
inline void store(float* p, f32x16 a) { _mm512_storeu_ps(p, a.v); }
inline void store_n(float* p, f32x16 a, std::size_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
inline f32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline f32x16 zero() { return {_mm512_setzero_ps()}; }
inline f32x16 add(f32x16 a, f32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline f32x16 sub(f32x16 a, f32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline f32x16 mul(f32x16 a, f32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline f32x16 div(f32x16 a, f32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline f32x16 max(f32x16 a, f32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline f32x16 min(f32x16 a, f32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }

inline float sum(f32x16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest(f32x16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline f32x16 scale_exponent(f32x16 p, f32x16 t) {
  return {
      _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), _mm512_slli_epi32(_mm512_castps_si512(t.v), 23)))};
}

inline f32x16 one_nan(f32x16 a) {
  return {_mm512_mask_mov_ps(a.v, _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q),
                             _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)))};
}

inline f32x16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline f32x16 load_bf16(const std::uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline f32x16 load_i8(const std::int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline f32x16 load_u8(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline f32x16 load_low_u4(const std::uint8_t* p) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_cvtepi32_ps(_mm512_and_si512(bytes, _mm512_set1_epi32(15)))};
}
inline f32x16 load_high_u4(const std::uint8_t* p) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm512_cvtepi32_ps(_mm512_srli_epi32(bytes, 4))};
}

struct words16 {
  __m512i v;
};
inline words16 load_words(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
// The permutation reads only the low four bits of each index: table lookup, masking and conversion in one step.
template<int J, int Offset>
inline f32x16 nibble(words16 w) {
  const __m512 values = _mm512_setr_ps(0 - Offset, 1 - Offset, 2 - Offset, 3 - Offset, 4 - Offset, 5 - Offset,
                                       6 - Offset, 7 - Offset, 8 - Offset, 9 - Offset, 10 - Offset, 11 - Offset,
                                       12 - Offset, 13 - Offset, 14 - Offset, 15 - Offset);
  return {_mm512_permutexvar_ps(J == 0 ? w.v : _mm512_srli_epi32(w.v, 4 * J), values)};
}
template<int J, int H, int Offset>
inline f32x16 five_bits(words16 low, words16 high) {
  const __m512 small = nibble<J, Offset>(low).v;
  const __mmask16 set = _mm512_test_epi32_mask(high.v, _mm512_set1_epi32(static_cast<int>(1U << H)));
  return {_mm512_mask_add_ps(small, set, small, _mm512_set1_ps(16))};
}
template<int J, int H, int Offset>
inline f32x16 six_bits(words16 low, words16 high) {
  // The table repeats every four entries, so the two higher bits select among equal entries.
  const __m512 steps = _mm512_setr_ps(0, 16, 32, 48, 0, 16, 32, 48, 0, 16, 32, 48, 0, 16, 32, 48);
  const __m512 upper = _mm512_permutexvar_ps(H == 0 ? high.v : _mm512_srli_epi32(high.v, 2 * H), steps);
  return {_mm512_add_ps(nibble<J, Offset>(low).v, upper)};
}
// As above: a table that repeats every four entries needs no mask.
template<int J, int Offset = 0>
inline f32x16 two_bits(words16 w) {
  const __m512 values =
      _mm512_setr_ps(0 - Offset, 1 - Offset, 2 - Offset, 3 - Offset, 0 - Offset, 1 - Offset, 2 - Offset, 3 - Offset,
                     0 - Offset, 1 - Offset, 2 - Offset, 3 - Offset, 0 - Offset, 1 - Offset, 2 - Offset, 3 - Offset);
  return {_mm512_permutexvar_ps(J == 0 ? w.v : _mm512_srli_epi32(w.v, 2 * J), values)};
}
template<int J, int H, int Offset>
inline f32x16 three_bits(words16 low, words16 high) {
  const __m512 small = two_bits<J, Offset>(low).v;
  const __mmask16 set = _mm512_test_epi32_mask(high.v, _mm512_set1_epi32(static_cast<int>(1U << H)));
  return {_mm512_mask_add_ps(small, set, small, _mm512_set1_ps(4))};
}
template<int J, class Numbers>
inline f32x16 nibble_of_table(words16 w) {
  constexpr auto& n = Numbers::values;
  const __m512 values = _mm512_setr_ps(n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
                                       n[13], n[14], n[15]);
  return {_mm512_permutexvar_ps(J == 0 ? w.v : _mm512_srli_epi32(w.v, 4 * J), values)};
}
template<int J, int H, class Numbers>
inline f32x16 three_bits_of_table(words16 low, words16 high) {
  constexpr auto& n = Numbers::values;
  const __m512 clear =
      _mm512_setr_ps(n[0], n[1], n[2], n[3], n[0], n[1], n[2], n[3], n[0], n[1], n[2], n[3], n[0], n[1], n[2], n[3]);
  const __m512 raised =
      _mm512_setr_ps(n[4], n[5], n[6], n[7], n[4], n[5], n[6], n[7], n[4], n[5], n[6], n[7], n[4], n[5], n[6], n[7]);
  const __m512i index = J == 0 ? low.v : _mm512_srli_epi32(low.v, 2 * J);
  const __mmask16 set = _mm512_test_epi32_mask(high.v, _mm512_set1_epi32(static_cast<int>(1U << H)));
  return {_mm512_mask_permutexvar_ps(_mm512_permutexvar_ps(index, clear), set, index, raised)};
}
inline words16 shifted_right(words16 w, std::size_t bits) {
  return {_mm512_srl_epi32(w.v, _mm_cvtsi64_si128(static_cast<long long>(bits)))};
}
inline void store_f16(std::uint16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
inline void store_bf16(std::uint16_t* p, f32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline void prefetch_far(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }
inline void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }
