// The integer verbs in four registers of four lanes. Semantics: ints_scalar.inl.hpp.

struct i32x16 {
  int32x4_t v[4];
};
// 4 rows x 1 vector use 16 accumulators, 8 registers of numbers, 2 of factors and 2 of products in 32 registers.
inline constexpr int integer_rows_max = 4;
inline constexpr int integer_accumulators = 4;

inline i32x16 no_integers() {
  const int32x4_t four = vdupq_n_s32(0);
  return {{four, four, four, four}};
}
inline f32x16 to_floats(i32x16 x) {
  return {vcvtq_f32_s32(x.v[0]), vcvtq_f32_s32(x.v[1]), vcvtq_f32_s32(x.v[2]), vcvtq_f32_s32(x.v[3])};
}

/// The bytes as 16-bit integers, even and odd ones separately.
struct quads16 {
  int16x8_t even[4];
  int16x8_t odd[4];
};
inline quads16 load_quads(const std::byte* p) {
  quads16 q;
  for (int i = 0; i < 4; ++i) {
    const int16x8_t bytes = vreinterpretq_s16_s8(vld1q_s8(reinterpret_cast<const std::int8_t*>(p) + i * 16));
    q.even[i] = vshrq_n_s16(vshlq_n_s16(bytes, 8), 8);
    q.odd[i] = vshrq_n_s16(bytes, 8);
  }
  return q;
}
inline int16x8_t two_factors(const std::int16_t* f) {
  std::int32_t both;
  std::memcpy(&both, f, sizeof(both));
  return vreinterpretq_s16_s32(vdupq_n_s32(both));
}
/// Sums of adjacent products.
inline int32x4_t multiply_pairs(int16x8_t x, int16x8_t y) {
  return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  const int16x8_t first = two_factors(f);
  const int16x8_t second = two_factors(f + 2);
  for (int i = 0; i < 4; ++i) {
    sum.v[i] = vaddq_s32(vaddq_s32(sum.v[i], multiply_pairs(q.even[i], first)), multiply_pairs(q.odd[i], second));
  }
  return sum;
}

/// Two 16-bit integers per lane.
struct pairs16 {
  int16x8_t v[4];
};
inline pairs16 load_pairs(const std::byte* p) {
  pairs16 q;
  for (int i = 0; i < 4; ++i) q.v[i] = vld1q_s16(reinterpret_cast<const std::int16_t*>(p) + i * 8);
  return q;
}
inline i32x16 dot(i32x16 sum, const pairs16& p, const std::int16_t* f) {
  const int16x8_t factors = two_factors(f);
  for (int i = 0; i < 4; ++i) sum.v[i] = vaddq_s32(sum.v[i], multiply_pairs(p.v[i], factors));
  return sum;
}

inline void store_i16(std::int16_t* p, f32x16 x) {
  vst1q_s16(p, vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x.a)), vmovn_s32(vcvtnq_s32_f32(x.b))));
  vst1q_s16(p + 8, vcombine_s16(vmovn_s32(vcvtnq_s32_f32(x.c)), vmovn_s32(vcvtnq_s32_f32(x.d))));
}
inline void store_i8(std::int8_t* p, f32x16 x) {
  std::int16_t words[16];
  store_i16(words, x);
  vst1q_s8(p, vcombine_s8(vmovn_s16(vld1q_s16(words)), vmovn_s16(vld1q_s16(words + 8))));
}

inline void store_words(std::byte* p, words16 w) {
  auto* words = reinterpret_cast<std::uint8_t*>(p);
  vst1q_u8(words, vreinterpretq_u8_u32(w.a));
  vst1q_u8(words + 16, vreinterpretq_u8_u32(w.b));
  vst1q_u8(words + 32, vreinterpretq_u8_u32(w.c));
  vst1q_u8(words + 48, vreinterpretq_u8_u32(w.d));
}
template<int J>
inline f32x16 signed_byte(words16 w) {
  return each_four(
      [](uint32x4_t x, uint32x4_t) {
        return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(vshlq_n_u32(x, 24 - 8 * J)), 24));
      },
      w, w);
}
inline uint32x4_t low_byte(float32x4_t x) {
  return vandq_u32(vreinterpretq_u32_s32(vcvtnq_s32_f32(x)), vdupq_n_u32(0xff));
}
inline uint32x4_t join_bytes_four(float32x4_t x, float32x4_t y, float32x4_t z, float32x4_t w) {
  return vorrq_u32(vorrq_u32(low_byte(x), vshlq_n_u32(low_byte(y), 8)),
                   vorrq_u32(vshlq_n_u32(low_byte(z), 16), vshlq_n_u32(low_byte(w), 24)));
}
inline words16 join_bytes(f32x16 x, f32x16 y, f32x16 z, f32x16 w) {
  return {join_bytes_four(x.a, y.a, z.a, w.a), join_bytes_four(x.b, y.b, z.b, w.b), join_bytes_four(x.c, y.c, z.c, w.c),
          join_bytes_four(x.d, y.d, z.d, w.d)};
}

template<int J>
inline f32x16 signed_short(words16 w) {
  return each_four(
      [](uint32x4_t x, uint32x4_t) {
        return vcvtq_f32_s32(vshrq_n_s32(vreinterpretq_s32_u32(vshlq_n_u32(x, 16 - 16 * J)), 16));
      },
      w, w);
}
inline uint32x4_t join_shorts_four(float32x4_t x, float32x4_t y) {
  return vorrq_u32(vandq_u32(vreinterpretq_u32_s32(vcvtnq_s32_f32(x)), vdupq_n_u32(0xffff)),
                   vshlq_n_u32(vreinterpretq_u32_s32(vcvtnq_s32_f32(y)), 16));
}
inline words16 join_shorts(f32x16 x, f32x16 y) {
  return {join_shorts_four(x.a, y.a), join_shorts_four(x.b, y.b), join_shorts_four(x.c, y.c),
          join_shorts_four(x.d, y.d)};
}
