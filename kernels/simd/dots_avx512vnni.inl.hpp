// Sums of products of small integers by AVX-512 VNNI: two or four products and their sum in one instruction.

inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  return {_mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sum.v, q.even, two_factors(f)), q.odd, two_factors(f + 2))};
}

/// The bytes plus 128: the instruction multiplies unsigned with signed ones. start_of_dot takes the surplus away again.
struct byte_quads16 {
  __m512i v;
};
using byte_factor = std::int8_t;
inline byte_quads16 load_byte_quads(const std::byte* p) {
  return {_mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(0x80)))};
}
inline void put_factors(const std::int8_t* f, byte_factor* out) {
  out[0] = f[0];
  out[1] = f[2];
  out[2] = f[1];
  out[3] = f[3];
}
inline i32x16 start_of_dot(std::int32_t sum_of_factors) { return {_mm512_set1_epi32(-128 * sum_of_factors)}; }
inline i32x16 dot(i32x16 sum, byte_quads16 q, const byte_factor* f) {
  std::int32_t four;
  std::memcpy(&four, f, sizeof(four));
  return {_mm512_dpbusd_epi32(sum.v, q.v, _mm512_set1_epi32(four))};
}
