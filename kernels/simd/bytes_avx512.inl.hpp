// The verbs for words of bytes in one register. Semantics: bytes_scalar.inl.hpp. Needs ints_avx512.inl.hpp. Two more
// are for tiles: bytes minus a number, and integers as floats.

inline words16 low_nibbles(words16 w) { return {_mm512_and_si512(w.v, _mm512_set1_epi8(15))}; }
inline words16 high_nibbles(words16 w) { return low_nibbles({_mm512_srli_epi32(w.v, 4)}); }
/// Shifts all bits up by Shift (down if negative) and adds those of the mask in each byte to `low`.
template<int Shift, int Mask>
inline words16 with_moved_bits(words16 low, words16 w) {
  const __m512i moved = Shift >= 0 ? _mm512_slli_epi32(w.v, Shift < 0 ? 0 : Shift) : _mm512_srli_epi32(w.v, -Shift);
  constexpr int low_or_masked = 0xf8;  // a | b & c
  return {_mm512_ternarylogic_epi32(low.v, moved, _mm512_set1_epi8(Mask), low_or_masked)};
}
template<int J>
inline words16 with_fifth_bit(words16 low, words16 bits) {
  return with_moved_bits<4 - J, 0x10>(low, bits);
}
template<int J>
inline words16 with_upper_pair(words16 low, words16 pairs) {
  return with_moved_bits<4 - 2 * J, 0x30>(low, pairs);
}
template<int J>
inline words16 pairs_as_bytes(words16 w) {
  return {_mm512_and_si512(J == 0 ? w.v : _mm512_srli_epi32(w.v, 2 * J), _mm512_set1_epi8(3))};
}
template<int J>
inline words16 with_third_bit(words16 low, words16 bits) {
  return with_moved_bits<2 - J, 4>(low, bits);
}
template<class Numbers, int Offset>
inline words16 bytes_of_table(words16 nibbles) {
  constexpr auto& n = Numbers::values;
  const __m128i values = _mm_setr_epi8(
      static_cast<char>(n[0] + Offset), static_cast<char>(n[1] + Offset), static_cast<char>(n[2] + Offset),
      static_cast<char>(n[3] + Offset), static_cast<char>(n[4] + Offset), static_cast<char>(n[5] + Offset),
      static_cast<char>(n[6] + Offset), static_cast<char>(n[7] + Offset), static_cast<char>(n[8] + Offset),
      static_cast<char>(n[9] + Offset), static_cast<char>(n[10] + Offset), static_cast<char>(n[11] + Offset),
      static_cast<char>(n[12] + Offset), static_cast<char>(n[13] + Offset), static_cast<char>(n[14] + Offset),
      static_cast<char>(n[15] + Offset));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), nibbles.v)};
}
inline words16 add_128(words16 w) { return {_mm512_xor_si512(w.v, _mm512_set1_epi8(-128))}; }
template<int Offset>
inline words16 bytes_less(words16 w) {
  return {_mm512_sub_epi8(w.v, _mm512_set1_epi8(static_cast<char>(Offset)))};
}
inline f32x16 load_integers(const std::int32_t* p) { return {_mm512_cvtepi32_ps(_mm512_loadu_si512(p))}; }
inline void store_low_bytes(std::byte* p, f32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_castps_si512(a.v)));
}
