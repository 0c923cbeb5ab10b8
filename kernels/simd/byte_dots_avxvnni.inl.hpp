// Sums of products of bytes by the VEX form of VPDPBUSD. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_avx2.inl.hpp.

inline constexpr int dot_rows_max = 4;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = false;

template<int Bits, int Offset>
struct dots {
  __m256i lo;
  __m256i hi;
};
template<int Bits>
using dot_weights = words16;

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  if constexpr (Offset == 0) return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  const __m256i sum = _mm256_slli_epi32(_mm256_set1_epi32(*minus), std::countr_zero(static_cast<unsigned>(Offset)));
  return {sum, sum};
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return w;
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  int four;
  std::memcpy(&four, x, sizeof(four));
  const __m256i q = _mm256_set1_epi32(four);
  d.lo = _mm256_dpbusd_avx_epi32(d.lo, w.lo, q);
  d.hi = _mm256_dpbusd_avx_epi32(d.hi, w.hi, q);
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {_mm256_cvtepi32_ps(d.lo), _mm256_cvtepi32_ps(d.hi)};
}
