// The integer verbs, one lane at a time: the reference. Sums of integers are exact, so every target gives the same
// result, with any order and instruction. Callers ensure that no sum exceeds 32 bits.

/// Sixteen 32-bit integers.
struct i32x16 {
  std::int32_t v[16];
};
// Register blocking of integer sums: rows at once, and row x vector accumulators at once.
inline constexpr int integer_rows_max = 1;
inline constexpr int integer_accumulators = 1;

inline i32x16 no_integers() { return {}; }
/// Rounds to nearest, ties to even, if a float cannot represent the number.
inline f32x16 to_floats(i32x16 a) {
  return each_lane([&](int i) { return static_cast<float>(a.v[i]); });
}

/// Sixteen lanes of four signed bytes b[0..3] each.
struct quads16 {
  std::int8_t v[64];
};
inline quads16 load_quads(const std::byte* p) {
  quads16 q;
  std::memcpy(q.v, p, sizeof(q.v));
  return q;
}
/// sum + b[0] f[0] + b[2] f[1] + b[1] f[2] + b[3] f[3] in every lane, for four factors that all lanes share.
inline i32x16 dot(i32x16 sum, const quads16& q, const std::int16_t* f) {
  for (int i = 0; i < 16; ++i) {
    sum.v[i] += q.v[4 * i] * f[0] + q.v[4 * i + 2] * f[1] + q.v[4 * i + 1] * f[2] + q.v[4 * i + 3] * f[3];
  }
  return sum;
}

/// Sixteen lanes of two signed 16-bit integers.
struct pairs16 {
  std::int16_t v[32];
};
inline pairs16 load_pairs(const std::byte* p) {
  pairs16 q;
  std::memcpy(q.v, p, sizeof(q.v));
  return q;
}
/// sum + p[0] f[0] + p[1] f[1] in every lane, for two factors that all lanes share. Lanes of tokens that were never
/// written may exceed 32 bits: those wrap around.
inline i32x16 dot(i32x16 sum, const pairs16& p, const std::int16_t* f) {
  const auto wide = [](int x) { return static_cast<std::uint32_t>(x); };
  for (int i = 0; i < 16; ++i) {
    sum.v[i] = static_cast<std::int32_t>(wide(sum.v[i]) + wide(p.v[2 * i] * f[0]) + wide(p.v[2 * i + 1] * f[1]));
  }
  return sum;
}

/// Rounds to nearest, ties to even; requires |a| < 127.5.
inline void store_i8(std::int8_t* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(std::nearbyint(a.v[i]));
}
/// Rounds to nearest, ties to even; requires |a| < 32767.5.
inline void store_i16(std::int16_t* p, f32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int16_t>(std::nearbyint(a.v[i]));
}

inline void store_words(std::byte* p, words16 w) { std::memcpy(p, w.v, sizeof(w.v)); }
/// Byte J of each word, as a signed number.
template<int J>
inline f32x16 signed_byte(words16 w) {
  return each_lane([&](int i) { return static_cast<float>(static_cast<std::int8_t>(w.v[i] >> 8 * J & 0xff)); });
}
/// Half J of each word, as a signed number.
template<int J>
inline f32x16 signed_short(words16 w) {
  return each_lane([&](int i) { return static_cast<float>(static_cast<std::int16_t>(w.v[i] >> 16 * J & 0xffff)); });
}
/// Words of two signed 16-bit integers each, rounded as store_i16 does.
inline words16 join_shorts(f32x16 a, f32x16 b) {
  words16 w;
  const auto half = [](float x) { return std::uint32_t{static_cast<std::uint16_t>(std::lrint(x) & 0xffff)}; };
  for (int i = 0; i < 16; ++i) w.v[i] = half(a.v[i]) | half(b.v[i]) << 16;
  return w;
}
/// Words of four signed bytes each, rounded as store_i8 does.
inline words16 join_bytes(f32x16 a, f32x16 b, f32x16 c, f32x16 d) {
  words16 w;
  const auto byte = [](float x) { return std::uint32_t{static_cast<std::uint8_t>(std::lrint(x) & 0xff)}; };
  for (int i = 0; i < 16; ++i) w.v[i] = byte(a.v[i]) | byte(b.v[i]) << 8 | byte(c.v[i]) << 16 | byte(d.v[i]) << 24;
  return w;
}
