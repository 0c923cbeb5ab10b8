// The vector verbs, sixteen lanes in four registers. Semantics: vec_scalar.inl.hpp.

struct f32x16 {
  float32x4_t a;  // lanes 0 to 3
  float32x4_t b;
  float32x4_t c;
  float32x4_t d;
};

// 6 rows x 1 panel use 24 accumulators, 4 weights and a broadcast in 32 registers.
inline constexpr int gemm_rows_max = 6;
inline constexpr int gemm_accumulators = 6;
inline constexpr int fused_panels = 2;

inline f32x16 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
inline f32x16 load_n(const float* p, std::size_t n) {
  alignas(16) float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
inline void store(float* p, f32x16 x) {
  vst1q_f32(p, x.a);
  vst1q_f32(p + 4, x.b);
  vst1q_f32(p + 8, x.c);
  vst1q_f32(p + 12, x.d);
}
inline void store_n(float* p, f32x16 x, std::size_t n) {
  alignas(16) float lanes[16];
  store(lanes, x);
  for (std::size_t i = 0; i < n; ++i) p[i] = lanes[i];
}
inline f32x16 broadcast(float x) {
  const float32x4_t four = vdupq_n_f32(x);
  return {four, four, four, four};
}
inline f32x16 zero() { return broadcast(0.0F); }

template<class F>
inline f32x16 each_four(F f, f32x16 x, f32x16 y) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}
inline f32x16 add(f32x16 x, f32x16 y) {
  return each_four([](float32x4_t p, float32x4_t q) { return vaddq_f32(p, q); }, x, y);
}
inline f32x16 sub(f32x16 x, f32x16 y) {
  return each_four([](float32x4_t p, float32x4_t q) { return vsubq_f32(p, q); }, x, y);
}
inline f32x16 mul(f32x16 x, f32x16 y) {
  return each_four([](float32x4_t p, float32x4_t q) { return vmulq_f32(p, q); }, x, y);
}
inline f32x16 div(f32x16 x, f32x16 y) {
  return each_four([](float32x4_t p, float32x4_t q) { return vdivq_f32(p, q); }, x, y);
}
inline f32x16 fma(f32x16 x, f32x16 y, f32x16 z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
}
// FMAX and FMIN return NaN if either operand is NaN, and order zeros by sign; so a comparison selects instead.
inline float32x4_t larger(float32x4_t x, float32x4_t y) { return vbslq_f32(vcgtq_f32(x, y), x, y); }
inline float32x4_t smaller(float32x4_t x, float32x4_t y) { return vbslq_f32(vcltq_f32(x, y), x, y); }
inline f32x16 max(f32x16 x, f32x16 y) { return each_four(larger, x, y); }
inline f32x16 min(f32x16 x, f32x16 y) { return each_four(smaller, x, y); }

inline float sum(f32x16 x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.a, x.c), vaddq_f32(x.b, x.d));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float largest(f32x16 x) {
  const float32x4_t four = larger(larger(x.a, x.c), larger(x.b, x.d));
  const float32x2_t low = vget_low_f32(four), high = vget_high_f32(four);
  const float32x2_t two = vbsl_f32(vcgt_f32(low, high), low, high);
  const float p = vget_lane_f32(two, 0), q = vget_lane_f32(two, 1);
  return p > q ? p : q;
}
inline f32x16 scale_exponent(f32x16 p, f32x16 t) {
  return each_four(
      [](float32x4_t x, float32x4_t y) {
        return vreinterpretq_f32_u32(vaddq_u32(vreinterpretq_u32_f32(x), vshlq_n_u32(vreinterpretq_u32_f32(y), 23)));
      },
      p, t);
}

inline float32x4_t one_nan_four(float32x4_t x) {
  return vbslq_f32(vceqq_f32(x, x), x, vreinterpretq_f32_u32(vdupq_n_u32(0x7fc00000)));
}
inline f32x16 one_nan(f32x16 x) { return {one_nan_four(x.a), one_nan_four(x.b), one_nan_four(x.c), one_nan_four(x.d)}; }

inline float32x4_t widen_f16_four(const std::uint16_t* p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
inline f32x16 load_f16(const std::uint16_t* p) {
  return {widen_f16_four(p), widen_f16_four(p + 4), widen_f16_four(p + 8), widen_f16_four(p + 12)};
}
inline float32x4_t widen_bf16_four(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
inline f32x16 load_bf16(const std::uint16_t* p) {
  const uint16x8_t low = vld1q_u16(p), high = vld1q_u16(p + 8);
  return {widen_bf16_four(vget_low_u16(low)), widen_bf16_four(vget_high_u16(low)), widen_bf16_four(vget_low_u16(high)),
          widen_bf16_four(vget_high_u16(high))};
}
inline f32x16 load_i8(const std::int8_t* p) {
  const int8x16_t bytes = vld1q_s8(p);
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
          vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))};
}
inline f32x16 load_u8(const std::uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_high_u8(bytes);
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))), vcvtq_f32_u32(vmovl_high_u16(low)),
          vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))), vcvtq_f32_u32(vmovl_high_u16(high))};
}
inline f32x16 load_low_u4(const std::uint8_t* p) {
  std::uint8_t low[16];
  vst1q_u8(low, vandq_u8(vld1q_u8(p), vdupq_n_u8(15)));
  return load_u8(low);
}
inline f32x16 load_high_u4(const std::uint8_t* p) {
  std::uint8_t high[16];
  vst1q_u8(high, vshrq_n_u8(vld1q_u8(p), 4));
  return load_u8(high);
}

struct words16 {
  uint32x4_t a;
  uint32x4_t b;
  uint32x4_t c;
  uint32x4_t d;
};
inline words16 load_words(const std::byte* p) {
  const auto four = [p](int i) { return vreinterpretq_u32_u8(vld1q_u8(reinterpret_cast<const std::uint8_t*>(p) + i)); };
  return {four(0), four(16), four(32), four(48)};
}
template<class F>
inline f32x16 each_four(F f, words16 x, words16 y) {
  return {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)};
}
template<int Shift, int Mask>
inline uint32x4_t bits_of(uint32x4_t w) {
  if constexpr (Shift > 0) w = vshrq_n_u32(w, Shift);
  return vandq_u32(w, vdupq_n_u32(Mask));
}
/// Bits [Shift, Shift + popcount(Mask)) of each word, moved to bit 4.
template<int Shift, int Mask>
inline uint32x4_t upper_bits(uint32x4_t w) {
  if constexpr (Shift > 4) {
    w = vshrq_n_u32(w, Shift - 4);
  } else if constexpr (Shift < 4) {
    w = vshlq_n_u32(w, 4 - Shift);
  }
  return vandq_u32(w, vdupq_n_u32(Mask << 4));
}
template<int Offset>
inline float32x4_t float_less(uint32x4_t q) {
  const float32x4_t f = vcvtq_f32_u32(q);
  return Offset == 0 ? f : vsubq_f32(f, vdupq_n_f32(Offset));
}
template<int J, int Offset>
inline f32x16 nibble(words16 w) {
  return each_four([](uint32x4_t x, uint32x4_t) { return float_less<Offset>(bits_of<4 * J, 15>(x)); }, w, w);
}
template<int J, int Shift, int Mask, int Offset>
inline f32x16 nibble_and_upper(words16 low, words16 high) {
  return each_four(
      [](uint32x4_t x, uint32x4_t y) {
        return float_less<Offset>(vorrq_u32(bits_of<4 * J, 15>(x), upper_bits<Shift, Mask>(y)));
      },
      low, high);
}
template<int J, int H, int Offset>
inline f32x16 five_bits(words16 low, words16 high) {
  return nibble_and_upper<J, H, 1, Offset>(low, high);
}
template<int J, int H, int Offset>
inline f32x16 six_bits(words16 low, words16 high) {
  return nibble_and_upper<J, 2 * H, 3, Offset>(low, high);
}
template<int J>
inline f32x16 two_bits(words16 w) {
  return each_four([](uint32x4_t x, uint32x4_t) { return float_less<0>(bits_of<2 * J, 3>(x)); }, w, w);
}
/// Bit H of each word, moved to bit 2.
template<int H>
inline uint32x4_t third_bit(uint32x4_t w) {
  if constexpr (H > 2) {
    w = vshrq_n_u32(w, H - 2);
  } else if constexpr (H < 2) {
    w = vshlq_n_u32(w, 2 - H);
  }
  return vandq_u32(w, vdupq_n_u32(4));
}
template<int J, int H, int Offset>
inline f32x16 three_bits(words16 low, words16 high) {
  return each_four(
      [](uint32x4_t x, uint32x4_t y) { return float_less<Offset>(vorrq_u32(bits_of<2 * J, 3>(x), third_bit<H>(y))); },
      low, high);
}
/// The lookup is by bytes: each word's lowest byte is its index; the others are out of range and give 0.
inline float32x4_t four_of_table(int8x16_t values, uint32x4_t index) {
  const uint8x16_t lowest = vreinterpretq_u8_u32(vorrq_u32(index, vdupq_n_u32(0xffffff00)));
  const int32x4_t found = vreinterpretq_s32_s8(vqtbl1q_s8(values, lowest));
  return vcvtq_f32_s32(vshrq_n_s32(vshlq_n_s32(found, 24), 24));
}
template<int J, class Numbers>
inline f32x16 nibble_of_table(words16 w) {
  const int8x16_t values = vld1q_s8(Numbers::values);
  return each_four([values](uint32x4_t x, uint32x4_t) { return four_of_table(values, bits_of<4 * J, 15>(x)); }, w, w);
}
template<int J, int H, class Numbers>
inline f32x16 three_bits_of_table(words16 low, words16 high) {
  const int8x16_t values = vld1q_s8(Numbers::values);
  return each_four(
      [values](uint32x4_t x, uint32x4_t y) {
        return four_of_table(values, vorrq_u32(bits_of<2 * J, 3>(x), third_bit<H>(y)));
      },
      low, high);
}
inline words16 shifted_right(words16 w, std::size_t bits) {
  const int32x4_t by = vdupq_n_s32(-static_cast<std::int32_t>(bits));
  return {vshlq_u32(w.a, by), vshlq_u32(w.b, by), vshlq_u32(w.c, by), vshlq_u32(w.d, by)};
}
inline void store_f16(std::uint16_t* p, f32x16 x) {
  const auto four = [](float32x4_t f) { return vreinterpret_u16_f16(vcvt_f16_f32(f)); };
  vst1q_u16(p, vcombine_u16(four(x.a), four(x.b)));
  vst1q_u16(p + 8, vcombine_u16(four(x.c), four(x.d)));
}
inline uint16x4_t narrow_bf16_four(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet), 16);
}
inline void store_bf16(std::uint16_t* p, f32x16 x) {
  vst1q_u16(p, vcombine_u16(narrow_bf16_four(x.a), narrow_bf16_four(x.b)));
  vst1q_u16(p + 8, vcombine_u16(narrow_bf16_four(x.c), narrow_bf16_four(x.d)));
}
inline void prefetch(const void* p) { __builtin_prefetch(p); }
inline void prefetch_far(const void* p) { __builtin_prefetch(p, 0, 2); }
inline void prefetch_to_write(const void* p) { __builtin_prefetch(p, 1, 3); }
