// Rotary position embedding: pairs of dimensions are rotated by an angle that depends on the position.

/// The dimensions of pair i.
struct dimension_pair {
  std::size_t a;
  std::size_t b;
};
inline dimension_pair pair_at(rope_pairs pairs, std::size_t i, std::size_t half) {
  return pairs == rope_pairs::half_split ? dimension_pair{i, half + i} : dimension_pair{2 * i, 2 * i + 1};
}

inline void rotate_half_split(const float* x, const float* cosines, const float* sines, std::size_t half, float* out) {
  for_chunks(half, [&](std::size_t i, std::size_t lanes) {
    const f32x16 a = load_some(x + i, lanes);
    const f32x16 b = load_some(x + half + i, lanes);
    const f32x16 c = load_some(cosines + i, lanes);
    const f32x16 s = load_some(sines + i, lanes);
    store_some(out + i, sub(mul(a, c), mul(b, s)), lanes);
    store_some(out + half + i, add(mul(a, s), mul(b, c)), lanes);
  });
}

inline void rotate_adjacent(const float* x, const float* cosines, const float* sines, std::size_t half, float* out) {
  for (std::size_t i = 0; i < half; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    out[2 * i] = a * cosines[i] - b * sines[i];
    out[2 * i + 1] = a * sines[i] + b * cosines[i];
  }
}

void rotate(rope_pairs pairs, const float* x, rope_angles angles, std::size_t rotary_dim, std::size_t head_dim,
            float* out) {
  const std::size_t half = rotary_dim / 2;
  if (pairs == rope_pairs::half_split) {
    rotate_half_split(x, angles, angles + half, half, out);
  } else {
    rotate_adjacent(x, angles, angles + half, half, out);
  }
  for (std::size_t i = rotary_dim; i < head_dim; ++i) out[i] = x[i];
}
