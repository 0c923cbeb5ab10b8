// The verbs for words of bytes in two registers. Semantics: bytes_scalar.inl.hpp. Needs ints_avx2.inl.hpp.

inline words16 low_nibbles(words16 w) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(w.lo, mask), _mm256_and_si256(w.hi, mask)};
}
inline words16 high_nibbles(words16 w) { return low_nibbles({_mm256_srli_epi32(w.lo, 4), _mm256_srli_epi32(w.hi, 4)}); }
/// Shifts all bits up by Shift (down if negative) and keeps those of the mask in each byte.
template<int Shift, int Mask>
inline __m256i moved_bits(__m256i w) {
  const __m256i moved = Shift >= 0 ? _mm256_slli_epi32(w, Shift < 0 ? 0 : Shift) : _mm256_srli_epi32(w, -Shift);
  return _mm256_and_si256(moved, _mm256_set1_epi8(Mask));
}
template<int J>
inline words16 with_fifth_bit(words16 low, words16 bits) {
  return {_mm256_or_si256(low.lo, moved_bits<4 - J, 0x10>(bits.lo)),
          _mm256_or_si256(low.hi, moved_bits<4 - J, 0x10>(bits.hi))};
}
template<int J>
inline words16 with_upper_pair(words16 low, words16 pairs) {
  return {_mm256_or_si256(low.lo, moved_bits<4 - 2 * J, 0x30>(pairs.lo)),
          _mm256_or_si256(low.hi, moved_bits<4 - 2 * J, 0x30>(pairs.hi))};
}
template<int J>
inline words16 pairs_as_bytes(words16 w) {
  return {moved_bits<-2 * J, 3>(w.lo), moved_bits<-2 * J, 3>(w.hi)};
}
template<int J>
inline words16 with_third_bit(words16 low, words16 bits) {
  return {_mm256_or_si256(low.lo, moved_bits<2 - J, 4>(bits.lo)),
          _mm256_or_si256(low.hi, moved_bits<2 - J, 4>(bits.hi))};
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
  const __m256i both = _mm256_broadcastsi128_si256(values);
  return {_mm256_shuffle_epi8(both, nibbles.lo), _mm256_shuffle_epi8(both, nibbles.hi)};
}
inline words16 add_128(words16 w) {
  const __m256i top = _mm256_set1_epi8(-128);
  return {_mm256_xor_si256(w.lo, top), _mm256_xor_si256(w.hi, top)};
}
inline void store_low_bytes(std::byte* p, f32x16 a) {
  // The packs work within 128-bit halves: lanes 0 to 3 of `lo`, then of `hi`, then 4 to 7 of both.
  const __m256i mask = _mm256_set1_epi32(255);
  const __m256i words = _mm256_packus_epi32(_mm256_and_si256(_mm256_castps_si256(a.lo), mask),
                                            _mm256_and_si256(_mm256_castps_si256(a.hi), mask));
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(bytes, order)));
}
