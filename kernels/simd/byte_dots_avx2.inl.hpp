// Sums of products of bytes by VPMADDUBSW, which adds two products in 16 bits with saturation. It never saturates here.
// Weights of 4 bits: eight such pairs are at most 16 x 15 x 127 = 30,480; of 5 bits, four pairs: 8 x 31 x 127 = 31,496
// (of 2 and 3 bits, a group has four); of 6 bits, two: 4 x 63 x 127 = 32,004; of 7 bits, one: 2 x 127 x 127 = 32,258.
// That many are added in 16 bits before they are widened. Bytes are signed again, -128 to 127: their magnitude, at most
// 128, is multiplied with x of their sign: 2 x 128 x 127 = 32,512. Semantics: byte_dots_scalar.inl.hpp. Needs
// bytes_avx2.inl.hpp.

inline constexpr int dot_rows_max = 4;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = false;

/// Steps of four columns whose products are added in 16 bits.
constexpr int steps_in_16_bits(int bits) { return bits == 4 ? 8 : bits == 6 ? 2 : bits < 6 ? 4 : 1; }

template<int Bits, int Offset>
struct dots {
  __m256i lo;
  __m256i hi;
  __m256i pairs_lo;  // in 16 bits
  __m256i pairs_hi;
};

template<int Bits>
struct dot_weights {
  words16 w;
};
template<>
struct dot_weights<8> {
  words16 magnitude;
  words16 sign;
};

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  dots<Bits, Offset> d;
  if constexpr (Offset == 0 || Bits == 8) {
    d.lo = d.hi = _mm256_setzero_si256();
  } else {
    d.lo = _mm256_slli_epi32(_mm256_set1_epi32(*minus), std::countr_zero(static_cast<unsigned>(Offset)));
    d.hi = d.lo;
  }
  return d;
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  if constexpr (Bits == 8) {
    const words16 s = add_128(w);
    return {{_mm256_abs_epi8(s.lo), _mm256_abs_epi8(s.hi)}, s};
  } else {
    return {w};
  }
}
inline __m256i plus_pairs(__m256i sum, __m256i pairs) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  int four;
  std::memcpy(&four, x, sizeof(four));
  const __m256i q = _mm256_set1_epi32(four);
  constexpr int steps = steps_in_16_bits(Bits);
  if constexpr (Bits == 8) {
    d.lo = plus_pairs(d.lo, _mm256_maddubs_epi16(w.magnitude.lo, _mm256_sign_epi8(q, w.sign.lo)));
    d.hi = plus_pairs(d.hi, _mm256_maddubs_epi16(w.magnitude.hi, _mm256_sign_epi8(q, w.sign.hi)));
  } else {
    const __m256i lo = _mm256_maddubs_epi16(w.w.lo, q);
    const __m256i hi = _mm256_maddubs_epi16(w.w.hi, q);
    d.pairs_lo = I % steps == 0 ? lo : _mm256_add_epi16(d.pairs_lo, lo);
    d.pairs_hi = I % steps == 0 ? hi : _mm256_add_epi16(d.pairs_hi, hi);
    if constexpr (I % steps == steps - 1) {
      d.lo = plus_pairs(d.lo, d.pairs_lo);
      d.hi = plus_pairs(d.hi, d.pairs_hi);
    }
  }
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {_mm256_cvtepi32_ps(d.lo), _mm256_cvtepi32_ps(d.hi)};
}
