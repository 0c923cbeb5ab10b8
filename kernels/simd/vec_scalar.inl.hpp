// The vector verbs, one lane at a time: the reference. README.md explains why there is no include guard.

struct f32x16 {
  float v[16];
};

// Register blocking of the GEMM inner loop: rows at once, and row x panel accumulators at once.
inline constexpr int gemm_rows_max = 1;
inline constexpr int gemm_accumulators = 1;
/// Panels multiplied together when one row uses packed weights directly.
inline constexpr int fused_panels = 1;

template<class F>
inline f32x16 each_lane(F f) {
  f32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = f(i);
  return r;
}

inline f32x16 load(const float* p) {
  return each_lane([&](int i) { return p[i]; });
}
/// The first n lanes from memory, the others zero. n <= 16.
inline f32x16 load_n(const float* p, std::size_t n) {
  return each_lane([&](int i) { return static_cast<std::size_t>(i) < n ? p[i] : 0.0F; });
}
inline void store(float* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
inline void store_n(float* p, f32x16 a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = a.v[i];
}
inline f32x16 broadcast(float x) {
  return each_lane([&](int) { return x; });
}
inline f32x16 zero() { return broadcast(0.0F); }
inline f32x16 add(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] + b.v[i]; });
}
inline f32x16 sub(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] - b.v[i]; });
}
inline f32x16 mul(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] * b.v[i]; });
}
inline f32x16 div(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] / b.v[i]; });
}
/// a * b + c, rounded once.
inline f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return each_lane([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
/// Returns the second operand if either is NaN, as the instruction does.
inline f32x16 max(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline f32x16 min(f32x16 a, f32x16 b) {
  return each_lane([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
/// Adds lanes i and i + 8, then i + 4, i + 2, i + 1: the only order in which lanes are ever summed.
inline float sum(f32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] = a.v[i] + a.v[i + half];
  }
  return a.v[0];
}
inline float largest(f32x16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
  }
  return a.v[0];
}
/// p * 2^n, where the low bits of t = n + 1.5 * 2^23 are the integer n; the result must be a normal number.
inline f32x16 scale_exponent(f32x16 p, f32x16 t) {
  return each_lane([&](int i) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(p.v[i]) + (std::bit_cast<std::uint32_t>(t.v[i]) << 23));
  });
}

/// Replaces any NaN by the quiet NaN without sign or payload.
inline f32x16 one_nan(f32x16 a) {
  return each_lane([&](int i) { return a.v[i] == a.v[i] ? a.v[i] : std::numeric_limits<float>::quiet_NaN(); });
}

inline f32x16 load_f16(const std::uint16_t* p) {
  return each_lane([&](int i) { return widen_f16(p[i]); });
}
inline f32x16 load_bf16(const std::uint16_t* p) {
  return each_lane([&](int i) { return std::bit_cast<float>(std::uint32_t{p[i]} << 16); });
}
inline f32x16 load_i8(const std::int8_t* p) {
  return each_lane([&](int i) { return static_cast<float>(p[i]); });
}
inline f32x16 load_u8(const std::uint8_t* p) {
  return each_lane([&](int i) { return static_cast<float>(p[i]); });
}
/// The low and the high halves of bytes.
inline f32x16 load_low_u4(const std::uint8_t* p) {
  return each_lane([&](int i) { return static_cast<float>(p[i] & 15); });
}
inline f32x16 load_high_u4(const std::uint8_t* p) {
  return each_lane([&](int i) { return static_cast<float>(p[i] >> 4); });
}

/// Sixteen 32-bit words of packed small integers.
struct words16 {
  std::uint32_t v[16];
};
inline words16 load_words(const std::byte* p) {
  words16 w;
  std::memcpy(w.v, p, sizeof(w.v));
  return w;
}
/// Nibble J of each word, minus Offset.
template<int J, int Offset>
inline f32x16 nibble(words16 w) {
  return each_lane([&](int i) { return static_cast<float>(static_cast<int>(w.v[i] >> 4 * J & 15) - Offset); });
}
/// Nibble J of each low word with bit H of the high word above it, minus Offset.
template<int J, int H, int Offset>
inline f32x16 five_bits(words16 low, words16 high) {
  return each_lane([&](int i) {
    return static_cast<float>(static_cast<int>((low.v[i] >> 4 * J & 15) | (high.v[i] >> H & 1) << 4) - Offset);
  });
}
/// Nibble J of each low word with bits 2 H and 2 H + 1 of the high word above it, minus Offset.
template<int J, int H, int Offset>
inline f32x16 six_bits(words16 low, words16 high) {
  return each_lane([&](int i) {
    return static_cast<float>(static_cast<int>((low.v[i] >> 4 * J & 15) | (high.v[i] >> 2 * H & 3) << 4) - Offset);
  });
}
/// Bits 2 J and 2 J + 1 of each word.
template<int J>
inline f32x16 two_bits(words16 w) {
  return each_lane([&](int i) { return static_cast<float>(w.v[i] >> 2 * J & 3); });
}
/// Bits 2 J and 2 J + 1 of each low word with bit H of the high word above them, minus Offset.
template<int J, int H, int Offset>
inline f32x16 three_bits(words16 low, words16 high) {
  return each_lane([&](int i) {
    return static_cast<float>(static_cast<int>((low.v[i] >> 2 * J & 3) | (high.v[i] >> H & 1) << 2) - Offset);
  });
}
/// The table's number at nibble J of each word.
template<int J, class Numbers>
inline f32x16 nibble_of_table(words16 w) {
  return each_lane([&](int i) { return static_cast<float>(Numbers::values[w.v[i] >> 4 * J & 15]); });
}
/// The table's number at bits 2 J and 2 J + 1 of each low word with bit H of the high word above them.
template<int J, int H, class Numbers>
inline f32x16 three_bits_of_table(words16 low, words16 high) {
  return each_lane(
      [&](int i) { return static_cast<float>(Numbers::values[(low.v[i] >> 2 * J & 3) | (high.v[i] >> H & 1) << 2]); });
}
inline words16 shifted_right(words16 w, std::size_t bits) {
  for (std::uint32_t& word : w.v) word >>= bits;
  return w;
}
/// Rounds to nearest, ties to even; NaN stays NaN.
inline void store_f16(std::uint16_t* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = narrow_f16(a.v[i]);
}
inline void store_bf16(std::uint16_t* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = narrow_bf16(a.v[i]);
}
inline void prefetch(const void*) {}
inline void prefetch_far(const void*) {}
inline void prefetch_to_write(const void*) {}
