// Sums of products of bytes by VPMADDUBSW in one register, for AVX-512 without VNNI. byte_dots_avx2.inl.hpp explains
// why nothing saturates. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_avx512.inl.hpp.

// 8 rows use up to 16 sums of integers and 8 of floats in 32 registers.
inline constexpr int dot_rows_max = 8;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = false;

constexpr int steps_in_16_bits(int bits) { return bits == 4 ? 8 : bits == 6 ? 2 : bits < 6 ? 4 : 1; }

template<int Bits, int Offset>
struct dots {
  __m512i v;
  __m512i pairs;  // in 16 bits
};

template<int Bits>
struct dot_weights {
  __m512i v;
};
template<>
struct dot_weights<8> {
  __m512i magnitude;
  __mmask64 negative;
};

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  dots<Bits, Offset> d;
  if constexpr (Offset == 0 || Bits == 8) {
    d.v = _mm512_setzero_si512();
  } else {
    d.v = _mm512_slli_epi32(_mm512_set1_epi32(*minus), std::countr_zero(static_cast<unsigned>(Offset)));
  }
  return d;
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  if constexpr (Bits == 8) {
    const __m512i s = add_128(w).v;
    return {_mm512_abs_epi8(s), _mm512_movepi8_mask(s)};
  } else {
    return {w.v};
  }
}
inline __m512i plus_pairs(__m512i sum, __m512i pairs) {
  return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  int four;
  std::memcpy(&four, x, sizeof(four));
  const __m512i q = _mm512_set1_epi32(four);
  constexpr int steps = steps_in_16_bits(Bits);
  if constexpr (Bits == 8) {
    const __m512i signed_q = _mm512_mask_sub_epi8(q, w.negative, _mm512_setzero_si512(), q);
    d.v = plus_pairs(d.v, _mm512_maddubs_epi16(w.magnitude, signed_q));
  } else {
    const __m512i two = _mm512_maddubs_epi16(w.v, q);
    d.pairs = I % steps == 0 ? two : _mm512_add_epi16(d.pairs, two);
    if constexpr (I % steps == steps - 1) d.v = plus_pairs(d.v, d.pairs);
  }
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {_mm512_cvtepi32_ps(d.v)};
}
