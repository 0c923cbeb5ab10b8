// The integer verbs in two registers of eight lanes. Semantics: ints_scalar.inl.hpp.

struct i32x16 {
  __m256i lo;
  __m256i hi;
};
// 4 rows x 1 vector use 8 accumulators, 4 registers of numbers, 2 of factors and 2 of products in 16 registers.
inline constexpr int integer_rows_max = 4;
inline constexpr int integer_accumulators = 4;

inline i32x16 no_integers() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline f32x16 to_floats(i32x16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }

/// The bytes as 16-bit integers, even and odd ones separately.
struct quads16 {
  __m256i even_lo, even_hi, odd_lo, odd_hi;
};
inline quads16 load_quads(const std::byte* p) {
  const __m256i lo = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i hi = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  return {_mm256_srai_epi16(_mm256_slli_epi16(lo, 8), 8), _mm256_srai_epi16(_mm256_slli_epi16(hi, 8), 8),
          _mm256_srai_epi16(lo, 8), _mm256_srai_epi16(hi, 8)};
}
inline __m256i two_factors(const std::int16_t* f) {
  std::int32_t both;
  std::memcpy(&both, f, sizeof(both));
  return _mm256_set1_epi32(both);
}
inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  const __m256i first = two_factors(f);
  const __m256i second = two_factors(f + 2);
  return {_mm256_add_epi32(_mm256_add_epi32(sum.lo, _mm256_madd_epi16(q.even_lo, first)),
                           _mm256_madd_epi16(q.odd_lo, second)),
          _mm256_add_epi32(_mm256_add_epi32(sum.hi, _mm256_madd_epi16(q.even_hi, first)),
                           _mm256_madd_epi16(q.odd_hi, second))};
}

/// Two 16-bit integers per lane.
struct pairs16 {
  __m256i lo, hi;
};
inline pairs16 load_pairs(const std::byte* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
inline i32x16 dot(i32x16 sum, const pairs16& p, const std::int16_t* f) {
  const __m256i factors = two_factors(f);
  return {_mm256_add_epi32(sum.lo, _mm256_madd_epi16(p.lo, factors)),
          _mm256_add_epi32(sum.hi, _mm256_madd_epi16(p.hi, factors))};
}

// Packing works within 128-bit halves; the permutation restores the order of the quarters.
inline __m256i packed_i16(f32x16 a) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)), 0xd8);
}
inline void store_i8(std::int8_t* p, f32x16 a) {
  const __m256i words = packed_i16(a);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}
inline void store_i16(std::int16_t* p, f32x16 a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed_i16(a)); }

inline void store_words(std::byte* p, words16 w) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), w.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), w.hi);
}
template<int J>
inline __m256 signed_byte_half(__m256i w) {
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w, 24 - 8 * J), 24));
}
template<int J>
inline f32x16 signed_byte(words16 w) {
  return {signed_byte_half<J>(w.lo), signed_byte_half<J>(w.hi)};
}
inline __m256i low_byte(__m256 x) { return _mm256_and_si256(_mm256_cvtps_epi32(x), _mm256_set1_epi32(0xff)); }
inline __m256i join_bytes_half(__m256 a, __m256 b, __m256 c, __m256 d) {
  return _mm256_or_si256(_mm256_or_si256(low_byte(a), _mm256_slli_epi32(low_byte(b), 8)),
                         _mm256_or_si256(_mm256_slli_epi32(low_byte(c), 16), _mm256_slli_epi32(low_byte(d), 24)));
}
inline words16 join_bytes(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  return {join_bytes_half(a.lo, b.lo, c.lo, d.lo), join_bytes_half(a.hi, b.hi, c.hi, d.hi)};
}

template<int J>
inline __m256 signed_short_half(__m256i w) {
  return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(w, 16 - 16 * J), 16));
}
template<int J>
inline f32x16 signed_short(words16 w) {
  return {signed_short_half<J>(w.lo), signed_short_half<J>(w.hi)};
}
inline __m256i join_shorts_half(__m256 a, __m256 b) {
  return _mm256_or_si256(_mm256_and_si256(_mm256_cvtps_epi32(a), _mm256_set1_epi32(0xffff)),
                         _mm256_slli_epi32(_mm256_cvtps_epi32(b), 16));
}
inline words16 join_shorts(f32x16 a, f32x16 b) { return {join_shorts_half(a.lo, b.lo), join_shorts_half(a.hi, b.hi)}; }
