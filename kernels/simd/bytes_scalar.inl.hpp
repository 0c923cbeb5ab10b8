// Verbs for words of four bytes, sixteen words at a time: the reference. Needs ints_scalar.inl.hpp.

template<class F>
inline words16 each_word(F f) {
  words16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}

inline words16 low_nibbles(words16 w) {
  return each_word([&](int i) { return w.v[i] & 0x0f0f0f0f; });
}
inline words16 high_nibbles(words16 w) {
  return each_word([&](int i) { return w.v[i] >> 4 & 0x0f0f0f0f; });
}
/// Bit J of each byte of `bits` becomes bit 4 of that byte of `low`, a nibble.
template<int J>
inline words16 with_fifth_bit(words16 low, words16 bits) {
  return each_word([&](int i) { return low.v[i] | (bits.v[i] >> J & 0x01010101) << 4; });
}
/// Bits 2 J and 2 J + 1 of each byte of `pairs` become bits 4 and 5 of that byte of `low`, a nibble.
template<int J>
inline words16 with_upper_pair(words16 low, words16 pairs) {
  return each_word([&](int i) { return low.v[i] | (pairs.v[i] >> 2 * J & 0x03030303) << 4; });
}
/// Bits 2 J and 2 J + 1 of each byte.
template<int J>
inline words16 pairs_as_bytes(words16 w) {
  return each_word([&](int i) { return w.v[i] >> 2 * J & 0x03030303; });
}
/// Bit J of each byte of `bits` becomes bit 2 of that byte of `low`, a pair of bits.
template<int J>
inline words16 with_third_bit(words16 low, words16 bits) {
  return each_word([&](int i) { return low.v[i] | (bits.v[i] >> J & 0x01010101) << 2; });
}
/// The table's numbers at indices 0 to 15, plus Offset, which makes them unsigned.
template<class Numbers, int Offset>
inline words16 bytes_of_table(words16 nibbles) {
  return each_word([&](int i) {
    std::uint32_t word = 0;
    for (int b = 0; b < 4; ++b) {
      word |= static_cast<std::uint32_t>(Numbers::values[nibbles.v[i] >> 8 * b & 15] + Offset) << 8 * b;
    }
    return word;
  });
}
/// Adds 128 to signed bytes, which makes them unsigned ones.
inline words16 add_128(words16 w) {
  return each_word([&](int i) { return w.v[i] ^ 0x80808080; });
}
/// The lowest byte of each lane's bits.
inline void store_low_bytes(std::byte* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(a.v[i]) & 255);
}
