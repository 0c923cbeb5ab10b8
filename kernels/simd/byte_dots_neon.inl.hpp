// Sums of products of bytes by SMLAL, which adds products in 16 bits and could wrap around. It never does here, even
// when the two sums of a pair are added as well. Weights of 4 bits: eight pairs are at most 16 x 15 x 127 = 30,480; of
// 5 bits, four: 8 x 31 x 127 = 31,496 (of 2 and 3 bits, a group has four); of 6 bits, two: 4 x 63 x 127 = 32,004; of 7
// bits, one: 2 x 127 x 127 = 32,258; of signed bytes, -128 to 127, one: 2 x 128 x 127 = 32,512. That many are added in
// 16 bits before they are widened. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_neon.inl.hpp.

inline constexpr int dot_rows_max = 4;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = false;

/// Steps of four columns whose products are added in 16 bits.
constexpr int steps_in_16_bits(int bits) { return bits == 4 ? 8 : bits == 6 ? 2 : bits < 6 ? 4 : 1; }

/// Sums of four lanes, and their products that are still in 16 bits, as two columns each.
struct dots_of_four {
  int32x4_t sum;
  int16x8_t low;  // lanes 0 and 1
  int16x8_t high;
};
template<int Bits, int Offset>
struct dots {
  dots_of_four a, b, c, d;
};
template<int Bits>
using dot_weights = words16;

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  // 8-bit weights are signed again, see ready().
  const int32x4_t sum = vdupq_n_s32(Bits == 8 ? 0 : Offset * *minus);
  const dots_of_four four{sum, vdupq_n_s16(0), vdupq_n_s16(0)};
  return {four, four, four, four};
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return Bits == 8 ? add_128(w) : w;
}
template<int Steps, int I>
inline void add_to_four(dots_of_four& d, uint32x4_t words, int8x16_t q) {
  const int8x16_t w = vreinterpretq_s8_u32(words);
  if constexpr (I % Steps == 0) {
    d.low = vmull_s8(vget_low_s8(w), vget_low_s8(q));
    d.high = vmull_high_s8(w, q);
  } else {
    d.low = vmlal_s8(d.low, vget_low_s8(w), vget_low_s8(q));
    d.high = vmlal_high_s8(d.high, w, q);
  }
  if constexpr (I % Steps == Steps - 1) d.sum = vpadalq_s16(d.sum, vpaddq_s16(d.low, d.high));
}
/// The four bytes at x, repeated four times.
inline int8x16_t four_bytes(const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof(four));
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  const int8x16_t q = four_bytes(x);
  constexpr int steps = steps_in_16_bits(Bits);
  add_to_four<steps, I>(d.a, w.a, q);
  add_to_four<steps, I>(d.b, w.b, q);
  add_to_four<steps, I>(d.c, w.c, q);
  add_to_four<steps, I>(d.d, w.d, q);
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {vcvtq_f32_s32(d.a.sum), vcvtq_f32_s32(d.b.sum), vcvtq_f32_s32(d.c.sum), vcvtq_f32_s32(d.d.sum)};
}
