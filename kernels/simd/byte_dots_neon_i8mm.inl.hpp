// Sums of products of unsigned bytes of weights with signed bytes of x: by USDOT for one row, by USMMLA for two rows at
// once. Semantics: byte_dots_scalar.inl.hpp. Needs bytes_neon.inl.hpp.

// 2 pairs of rows x 1 panel use 16 sums of integers, 8 weights and 2 times 16 bytes of x in 32 registers.
inline constexpr int dot_rows_max = 4;
inline constexpr int dot_panels_max = 1;
inline constexpr bool dots_of_row_pairs = true;

template<int Bits, int Offset>
struct dots {
  int32x4_t a, b, c, d;
};
template<int Bits>
using dot_weights = words16;

template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  const int32x4_t sum = vdupq_n_s32(Offset * *minus);
  return {sum, sum, sum, sum};
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return w;
}
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof(four));
  const int8x16_t q = vreinterpretq_s8_s32(vdupq_n_s32(four));
  d.a = vusdotq_s32(d.a, vreinterpretq_u8_u32(w.a), q);
  d.b = vusdotq_s32(d.b, vreinterpretq_u8_u32(w.b), q);
  d.c = vusdotq_s32(d.c, vreinterpretq_u8_u32(w.c), q);
  d.d = vusdotq_s32(d.d, vreinterpretq_u8_u32(w.d), q);
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return {vcvtq_f32_s32(d.a), vcvtq_f32_s32(d.b), vcvtq_f32_s32(d.c), vcvtq_f32_s32(d.d)};
}

// For two rows, an element of USMMLA's result belongs to one of two lanes and one of two rows.

/// Element 2 l + r of a register belongs to lane l of its two lanes and to row r.
struct pair_dots {
  int32x4_t v[8];
};
/// Each register has eight columns of two lanes.
struct pair_weights {
  uint8x16_t v[8];
};
inline pair_dots begin_pair_dots(std::int32_t first, std::int32_t second) {
  const int32x4_t both = vzip1q_s32(vdupq_n_s32(first), vdupq_n_s32(second));
  return {{both, both, both, both, both, both, both, both}};
}
inline pair_weights ready_for_pairs(words16 low, words16 high) {
  const auto first = [](uint32x4_t x, uint32x4_t y) { return vreinterpretq_u8_u32(vzip1q_u32(x, y)); };
  const auto second = [](uint32x4_t x, uint32x4_t y) { return vreinterpretq_u8_u32(vzip2q_u32(x, y)); };
  return {{first(low.a, high.a), second(low.a, high.a), first(low.b, high.b), second(low.b, high.b),
           first(low.c, high.c), second(low.c, high.c), first(low.d, high.d), second(low.d, high.d)}};
}
/// first, second: eight bytes of each row.
inline void add_pair_dots(pair_dots& d, const pair_weights& w, const std::byte* first, const std::byte* second) {
  const int8x16_t q = vcombine_s8(vld1_s8(reinterpret_cast<const std::int8_t*>(first)),
                                  vld1_s8(reinterpret_cast<const std::int8_t*>(second)));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) d.v[i] = vusmmlaq_s32(d.v[i], w.v[i], q);
}
inline f32x16 row_of_pair(const pair_dots& d, int row) {
  const auto four = [row](int32x4_t low, int32x4_t high) {
    return vcvtq_f32_s32(row == 0 ? vuzp1q_s32(low, high) : vuzp2q_s32(low, high));
  };
  return {four(d.v[0], d.v[1]), four(d.v[2], d.v[3]), four(d.v[4], d.v[5]), four(d.v[6], d.v[7])};
}
