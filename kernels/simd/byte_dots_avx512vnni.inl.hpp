// Sums of products of bytes by VPDPBUSD. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_avx512.inl.hpp.

// 6 rows x 2 panels use 12 sums of integers and 12 of floats, 2 panels of weights and their scales in 32 registers, so
// that four broadcast bytes of x serve two products.
inline constexpr int dot_rows_max = 6;
inline constexpr int dot_panels_max = 2;
inline constexpr bool dots_of_row_pairs = false;

template<int Bits, int Offset>
struct dots {
  __m512i v;
};
template<int Bits>
using dot_weights = words16;

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  if constexpr (Offset == 0) return {_mm512_setzero_si512()};
  static_assert(std::has_single_bit(static_cast<unsigned>(Offset)) || Offset == 0);
  return {_mm512_slli_epi32(_mm512_set1_epi32(*minus), std::countr_zero(static_cast<unsigned>(Offset)))};
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return w;
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  int four;
  std::memcpy(&four, x, sizeof(four));
  d.v = _mm512_dpbusd_epi32(d.v, w.v, _mm512_set1_epi32(four));
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {_mm512_cvtepi32_ps(d.v)};
}
