// Sums of products of bytes by SDOT, whose bytes are all signed: 8-bit weights become signed again, the others are
// small. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_neon.inl.hpp.

// 4 rows x 1 panel use 16 sums of integers, 4 weights and 4 bytes of x in 32 registers.
inline constexpr int dot_rows_max = 4;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = false;

template<int Bits, int Offset>
struct dots {
  int32x4_t a, b, c, d;
};
template<int Bits>
using dot_weights = words16;

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  const int32x4_t sum = vdupq_n_s32(Bits == 8 ? 0 : Offset * *minus);
  return {sum, sum, sum, sum};
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return Bits == 8 ? add_128(w) : w;
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof(four));
  const int8x16_t q = vreinterpretq_s8_s32(vdupq_n_s32(four));
  d.a = vdotq_s32(d.a, vreinterpretq_s8_u32(w.a), q);
  d.b = vdotq_s32(d.b, vreinterpretq_s8_u32(w.b), q);
  d.c = vdotq_s32(d.c, vreinterpretq_s8_u32(w.c), q);
  d.d = vdotq_s32(d.d, vreinterpretq_s8_u32(w.d), q);
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {vcvtq_f32_s32(d.a), vcvtq_f32_s32(d.b), vcvtq_f32_s32(d.c), vcvtq_f32_s32(d.d)};
}
