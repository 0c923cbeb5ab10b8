// Sums of products of bytes, one lane at a time: the reference. Needs bytes_scalar.inl.hpp. Sums of integers are exact
// in any order, so a target chooses its own.

// Register blocking of the products' inner loop: rows and panels at once.
inline constexpr int dot_rows_max = 1;
inline constexpr int dot_panels_max = 1;
/// Whether rows are processed in pairs, by ops/gemm_int8_pairs.inl.hpp.
inline constexpr bool dots_of_row_pairs = false;

/// Sixteen sums over a group of columns whose weights are unsigned integers of `Bits` bits, which exceed their values
/// by `Offset`.
template<int Bits, int Offset>
struct dots {
  std::int32_t v[16];
};
/// The form of weights for add_dots.
template<int Bits>
using dot_weights = words16;

/// minus: the negated sum of x over the group. The sums begin at Offset times that, which cancels the offset.
template<int Bits, int Offset>
inline dots<Bits, Offset> begin_dots(const std::int32_t* minus) {
  dots<Bits, Offset> d;
  for (std::int32_t& v : d.v) v = Offset * *minus;
  return d;
}
template<int Bits>
inline dot_weights<Bits> ready(words16 w) {
  return w;
}
/// Adds the products of four columns, number I of the group: unsigned bytes of w with signed bytes at x.
template<int I, int Bits, int Offset>
inline void add_dots(dots<Bits, Offset>& d, const dot_weights<Bits>& w, const std::byte* x) {
  std::int8_t q[4];
  std::memcpy(q, x, sizeof(q));
  for (int i = 0; i < 16; ++i) {
    for (int b = 0; b < 4; ++b) d.v[i] += static_cast<std::int32_t>(w.v[i] >> 8 * b & 255) * q[b];
  }
}
template<int Bits, int Offset>
inline f32x16 as_floats(const dots<Bits, Offset>& d) {
  return each_lane([&](int i) { return static_cast<float>(d.v[i]); });
}
