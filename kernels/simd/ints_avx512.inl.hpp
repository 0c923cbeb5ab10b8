// The integer verbs in one register of sixteen lanes. Semantics: ints_scalar.inl.hpp. For sums of products see
// int_dots_avx512.inl.hpp or int_dots_avx512vnni.inl.hpp.

struct i32x16 {
  __m512i v;
};
// 12 accumulators, up to 8 registers of numbers, 2 of factors and a product. With 20 the compiler spills some.
inline constexpr int integer_rows_max = 6;
inline constexpr int integer_accumulators = 12;

inline i32x16 no_integers() { return {_mm512_setzero_si512()}; }
inline f32x16 to_floats(i32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }

/// The bytes as 16-bit integers, even and odd ones separately.
struct quads16 {
  __m512i even, odd;
};
inline quads16 load_quads(const std::byte* p) {
  const __m512i bytes = _mm512_loadu_si512(p);
  return {_mm512_srai_epi16(_mm512_slli_epi16(bytes, 8), 8), _mm512_srai_epi16(bytes, 8)};
}
/// Two 16-bit integers per lane.
struct pairs16 {
  __m512i v;
};
inline pairs16 load_pairs(const std::byte* p) { return {_mm512_loadu_si512(p)}; }
inline __m512i two_factors(const std::int16_t* f) {
  std::int32_t both;
  std::memcpy(&both, f, sizeof(both));
  return _mm512_set1_epi32(both);
}

inline void store_i8(std::int8_t* p, f32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}
inline void store_i16(std::int16_t* p, f32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a.v)));
}

inline void store_words(std::byte* p, words16 w) { _mm512_storeu_si512(p, w.v); }
template<int J>
inline f32x16 signed_byte(words16 w) {
  return {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w.v, 24 - 8 * J), 24))};
}
inline __m512i low_byte(f32x16 x) { return _mm512_and_si512(_mm512_cvtps_epi32(x.v), _mm512_set1_epi32(0xff)); }
inline words16 join_bytes(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  return {_mm512_or_si512(_mm512_or_si512(low_byte(a), _mm512_slli_epi32(low_byte(b), 8)),
                          _mm512_or_si512(_mm512_slli_epi32(low_byte(c), 16), _mm512_slli_epi32(low_byte(d), 24)))};
}

template<int J>
inline f32x16 signed_short(words16 w) {
  return {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(w.v, 16 - 16 * J), 16))};
}
inline words16 join_shorts(f32x16 a, f32x16 b) {
  return {_mm512_or_si512(_mm512_and_si512(_mm512_cvtps_epi32(a.v), _mm512_set1_epi32(0xffff)),
                          _mm512_slli_epi32(_mm512_cvtps_epi32(b.v), 16))};
}
