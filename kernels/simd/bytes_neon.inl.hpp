// The verbs for words of bytes in four registers. Semantics: bytes_scalar.inl.hpp. Needs ints_neon.inl.hpp.

template<class F>
inline words16 each_register(F f, words16 x, words16 y) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}
inline uint32x4_t in_each_byte(std::uint8_t bits) { return vreinterpretq_u32_u8(vdupq_n_u8(bits)); }

inline words16 low_nibbles(words16 w) {
  return each_register([](uint32x4_t x, uint32x4_t) { return vandq_u32(x, in_each_byte(15)); }, w, w);
}
inline words16 high_nibbles(words16 w) {
  return each_register(
      [](uint32x4_t x, uint32x4_t) { return vreinterpretq_u32_u8(vshrq_n_u8(vreinterpretq_u8_u32(x), 4)); }, w, w);
}
/// Adds bits [From, From + popcount(Mask)) of each byte of `w`, moved to bit 4, to `low`.
template<int From, int Mask>
inline words16 with_bits(words16 low, words16 w) {
  return each_register(
      [](uint32x4_t x, uint32x4_t y) {
        if constexpr (From > 4) {
          y = vshrq_n_u32(y, From - 4);
        } else if constexpr (From < 4) {
          y = vshlq_n_u32(y, 4 - From);
        }
        return vorrq_u32(x, vandq_u32(y, in_each_byte(Mask << 4)));
      },
      low, w);
}
template<int J>
inline words16 with_fifth_bit(words16 low, words16 bits) {
  return with_bits<J, 1>(low, bits);
}
template<int J>
inline words16 with_upper_pair(words16 low, words16 pairs) {
  return with_bits<2 * J, 3>(low, pairs);
}
template<int J>
inline words16 pairs_as_bytes(words16 w) {
  return each_register(
      [](uint32x4_t x, uint32x4_t) {
        if constexpr (J > 0) x = vshrq_n_u32(x, 2 * J);
        return vandq_u32(x, in_each_byte(3));
      },
      w, w);
}
template<int J>
inline words16 with_third_bit(words16 low, words16 bits) {
  return each_register(
      [](uint32x4_t x, uint32x4_t y) {
        if constexpr (J > 2) {
          y = vshrq_n_u32(y, J - 2);
        } else if constexpr (J < 2) {
          y = vshlq_n_u32(y, 2 - J);
        }
        return vorrq_u32(x, vandq_u32(y, in_each_byte(4)));
      },
      low, bits);
}
template<class Numbers, int Offset>
inline words16 bytes_of_table(words16 nibbles) {
  const uint8x16_t values =
      vreinterpretq_u8_s8(vaddq_s8(vld1q_s8(Numbers::values), vdupq_n_s8(static_cast<std::int8_t>(Offset))));
  return each_register(
      [values](uint32x4_t x, uint32x4_t) { return vreinterpretq_u32_u8(vqtbl1q_u8(values, vreinterpretq_u8_u32(x))); },
      nibbles, nibbles);
}
inline words16 add_128(words16 w) {
  return each_register([](uint32x4_t x, uint32x4_t) { return veorq_u32(x, in_each_byte(128)); }, w, w);
}
inline void store_low_bytes(std::byte* p, f32x16 x) {
  const auto half = [](float32x4_t low, float32x4_t high) {
    return vcombine_u16(vmovn_u32(vreinterpretq_u32_f32(low)), vmovn_u32(vreinterpretq_u32_f32(high)));
  };
  const uint8x16_t bytes = vcombine_u8(vmovn_u16(half(x.a, x.b)), vmovn_u16(half(x.c, x.d)));
  vst1q_u8(reinterpret_cast<std::uint8_t*>(p), bytes);
}
