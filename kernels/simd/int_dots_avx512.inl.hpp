// Sums of products of small integers by AVX-512 BW: two products and an addition at a time.

inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  return {_mm512_add_epi32(_mm512_add_epi32(sum.v, _mm512_madd_epi16(q.even, two_factors(f))),
                           _mm512_madd_epi16(q.odd, two_factors(f + 2)))};
}
inline i32x16 dot(i32x16 sum, const pairs16& p, const std::int16_t* f) {
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(p.v, two_factors(f)))};
}
