// Sums of products of small integers by AVX-512 VNNI: two products and their sum in one instruction.

inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  return {_mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum.v, q.even, two_factors(f)), q.odd, two_factors(f + 2))};
}
inline i32x16 dot(i32x16 sum, const pairs16& p, const std::int16_t* f) {
  return {_mm512_dpwssd_epi32(sum.v, p.v, two_factors(f))};
}
