// Blocks of numbers as signed bytes with a scale, which is a bf16: largest / 127, so that no number leaves -127..127.
// Numbers end at +-65504 first, as f16 does. A block that holds NaN has the scale NaN, and so is every number read from
// it. All steps are those of one lane, whatever stands in the others.

/// NaN becomes -127: its block's scale says what it is.
inline f32x16 whole_steps(f32x16 x, f32x16 inverse) {
  return min(broadcast(127), max(mul(x, inverse), broadcast(-127)));
}
/// 1 / scale; of a scale so small that the products with it are nothing, or 0, a number that keeps them small.
inline f32x16 inverse_of(f32x16 scale) { return div(broadcast(1), max(broadcast(0x1p-100F), scale)); }
inline f32x16 magnitude(f32x16 x) { return max(x, sub(zero(), x)); }
inline constexpr float per_step = 1.0F / 127;

/// The largest magnitude; NaN when a number is NaN or infinite.
inline float largest_of(const float* x, std::size_t n) {
  f32x16 top = zero();
  f32x16 bad = zero();
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 a = load_some(x + i, lanes);
    top = max(top, magnitude(a));
    bad = fma(a, zero(), bad);
  });
  return largest(top) + sum(bad);
}

/// Writes largest / 127 as bf16 and gives it as a float. There is one NaN.
inline f32x16 store_scales(std::uint16_t* out, f32x16 largest_numbers) {
  store_bf16(out, mul(largest_numbers, broadcast(per_step)));
  for (int i = 0; i < 16; ++i) out[i] = (out[i] & 0x7fff) > 0x7f80 ? 0x7fc0 : out[i];
  return load_bf16(out);
}

/// Writes n <= head_dim_max numbers in steps of their scale, which it returns as bf16. out: n rounded up to 16
inline std::uint16_t quantise(const float* x, std::size_t n, std::int8_t* out) {
  float within[head_dim_max];
  for_chunks(
      n, [&](std::size_t i, std::size_t lanes) { store_some(within + i, within_f16(load_some(x + i, lanes)), lanes); });
  std::uint16_t scales[16];
  const f32x16 inverse = inverse_of(store_scales(scales, broadcast(largest_of(within, n))));
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    store_i8(out + i, whole_steps(load_some(within + i, lanes), inverse));
  });
  return scales[0];
}

inline std::uint16_t* q8_key_scales(std::byte* tile, std::size_t head_dim) {
  return reinterpret_cast<std::uint16_t*>(tile + q8_tile_integers(head_dim));
}

inline void store_q8(const kv_view& kv, std::size_t slot, std::size_t head_dim, const float* key, const float* value) {
  std::int8_t steps[head_dim_max];
  std::byte* tile = key_tile(kv, slot, head_dim);
  const std::size_t lane = slot % tile_tokens;
  for (std::size_t block = 0; block < q8_key_blocks(head_dim); ++block) {
    const std::size_t first = block * q8_key_block;
    const std::size_t n = std::min(q8_key_block, head_dim - first);
    q8_key_scales(tile, head_dim)[block * tile_tokens + lane] = quantise(key + first, n, steps);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t d = first + i;
      tile[(d / 4 * tile_tokens + lane) * 4 + q8_order[d % 4]] = static_cast<std::byte>(steps[i]);
    }
  }
  const std::uint16_t scale = quantise(value, head_dim, steps);
  std::memcpy(q8_value_scale(kv, slot, head_dim), &scale, sizeof(scale));
  std::byte* quad = q8_value_quad(kv, slot, head_dim);
  for (std::size_t d = 0; d < head_dim; ++d) quad[d * 4 + q8_order[slot % 4]] = static_cast<std::byte>(steps[d]);
}

/// Turns tokens [begin, begin + count) of a tile: the blocks that hold turned dimensions become floats and steps again.
inline void rotate_q8_tile(std::byte* tile, std::size_t begin, std::size_t count, rope_pairs pairs, rope_angles angles,
                           std::size_t rotary_dim, std::size_t head_dim) {
  alignas(64) float numbers[rotary_dim_max * tile_tokens];  // [dimension][token]
  const std::size_t half = rotary_dim / 2;
  const std::size_t end = std::min(head_dim, round_up(rotary_dim, q8_key_block));
  std::uint16_t* scales = q8_key_scales(tile, head_dim);
  for (std::size_t d = 0; d < end; d += 4) {
    const f32x16 scale = load_bf16(scales + d / q8_key_block * tile_tokens);
    const words16 quad = load_words(tile + d / 4 * tile_tokens * 4);
    float* to = numbers + d * tile_tokens;
    store(to, mul(signed_byte<0>(quad), scale));
    store(to + tile_tokens, mul(signed_byte<2>(quad), scale));
    store(to + 2 * tile_tokens, mul(signed_byte<1>(quad), scale));
    store(to + 3 * tile_tokens, mul(signed_byte<3>(quad), scale));
  }
  for (std::size_t i = 0; i < half; ++i) {
    const dimension_pair at = pair_at(pairs, i, half);
    const f32x16 a = load(numbers + at.a * tile_tokens);
    const f32x16 b = load(numbers + at.b * tile_tokens);
    const f32x16 c = broadcast(angles[i]);
    const f32x16 s = broadcast(angles[half + i]);
    store(numbers + at.a * tile_tokens, sub(mul(a, c), mul(b, s)));
    store(numbers + at.b * tile_tokens, add(mul(a, s), mul(b, c)));
  }
  for (std::size_t first = 0; first < end; first += q8_key_block) {
    const std::size_t last = std::min(end, first + q8_key_block);
    f32x16 top = zero();
    f32x16 bad = zero();
    for (std::size_t d = first; d < last; ++d) {
      const f32x16 x = within_f16(load(numbers + d * tile_tokens));
      store(numbers + d * tile_tokens, x);
      top = max(top, magnitude(x));
      bad = fma(x, zero(), bad);
    }
    std::uint16_t own[16];
    const f32x16 inverse = inverse_of(store_scales(own, add(top, bad)));
    std::copy_n(own + begin, count, scales + first / q8_key_block * tile_tokens + begin);
    for (std::size_t d = first; d < last; d += 4) {
      const auto steps = [&](std::size_t i) { return whole_steps(load(numbers + (d + i) * tile_tokens), inverse); };
      alignas(64) std::byte quad[tile_tokens * 4];
      store_words(quad, join_bytes(steps(0), steps(2), steps(1), steps(3)));
      std::memcpy(tile + (d / 4 * tile_tokens + begin) * 4, quad + begin * 4, count * 4);
    }
  }
}
