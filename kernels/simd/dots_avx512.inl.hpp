// Sums of products of small integers by AVX-512 BW: two products and an addition at a time.

inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  return {_mm512_add_epi32(_mm512_add_epi32(sum.v, _mm512_madd_epi16(q.even, two_factors(f))),
                           _mm512_madd_epi16(q.odd, two_factors(f + 2)))};
}

using byte_factor = std::int16_t;
using byte_quads16 = quads16;
inline byte_quads16 load_byte_quads(const std::byte* p) { return load_quads(p); }
inline void put_factors(const std::int8_t* f, byte_factor* out) { std::copy_n(f, 4, out); }
inline i32x16 start_of_dot(std::int32_t) { return no_integers(); }
