// The best that the machine can do with this target's instructions: loops for measuring, not for computing.

/// Independent chains, enough to hide the latency of a multiply-add on every port.
inline constexpr int peak_chains = 12;

/// Does iterations x peak_chains x 16 multiply-adds in registers. Returns a value that depends on all of them.
float multiply_add_loop(std::size_t iterations) {
  f32x16 acc[peak_chains];
  const f32x16 x = broadcast(0.999F);
  const f32x16 y = broadcast(0.001F);
#pragma GCC unroll 12
  for (int c = 0; c < peak_chains; ++c) acc[c] = broadcast(static_cast<float>(c));
  for (std::size_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < peak_chains; ++c) acc[c] = fma(acc[c], x, y);
  }
  f32x16 all = zero();
#pragma GCC unroll 12
  for (int c = 0; c < peak_chains; ++c) all = add(all, acc[c]);
  return sum(all);
}

/// Reads n floats (a multiple of 128) once, in order.
float read_loop(const float* x, std::size_t n) {
  f32x16 acc[8];
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) acc[c] = zero();
  for (std::size_t i = 0; i < n; i += 128) {
#pragma GCC unroll 8
    for (int c = 0; c < 8; ++c) {
      prefetch(x + i + c * 16 + 512);  // the hardware prefetcher stops at page ends
      acc[c] = add(acc[c], load(x + i + c * 16));
    }
  }
  f32x16 all = zero();
#pragma GCC unroll 8
  for (int c = 0; c < 8; ++c) all = add(all, acc[c]);
  return sum(all);
}
