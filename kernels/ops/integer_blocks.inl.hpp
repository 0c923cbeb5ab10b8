// Blocks of numbers as signed integers with a bf16 scale. Numbers are first clamped to +-65504, as in f16. A block that
// contains a NaN has a NaN scale, and so every number read from it is NaN. All steps work per lane, independent of the
// others.

/// The differences between the types. Integers of keys and values stay within -key_steps..key_steps and
/// -value_steps..value_steps. The queries and weights multiplied with them are limited to query_steps and weight_steps,
/// so that the sum of 32 products of the first kind, and of 128 of the second, stays below 2^31.
struct q8_numbers {
  static constexpr element_type type = element_type::q8_0;
  using integer = std::int8_t;
  using words = quads16;
  static constexpr float key_steps = 127, value_steps = 127, query_steps = 32767, weight_steps = 32767;
  /// A scale is the largest number / 127: if bf16 rounds it down, that number is clamped to 127 steps.
  static constexpr float scale_margin = 1;
};
struct i16_numbers {
  static constexpr element_type type = element_type::i16;
  using integer = std::int16_t;
  using words = pairs16;
  static constexpr float key_steps = 8191, value_steps = 4095, query_steps = 8191, weight_steps = 4095;
  /// Large enough that a scale is at least the largest number / steps after rounding to bf16.
  static constexpr float scale_margin = 1.004F;
};
template<class Numbers>
inline constexpr std::size_t per_word = integers_per_word(Numbers::type);

inline void store_integers_of(std::int8_t* p, f32x16 a) { store_i8(p, a); }
inline void store_integers_of(std::int16_t* p, f32x16 a) { store_i16(p, a); }

/// A NaN becomes -steps; its block's scale is NaN.
inline f32x16 whole_steps(f32x16 x, f32x16 inverse, float steps) {
  return min(broadcast(steps), max(mul(x, inverse), broadcast(-steps)));
}
/// 1 / scale; for a scale that is 0, or so small that products with it vanish, a number that keeps them small.
inline f32x16 inverse_of(f32x16 scale) { return div(broadcast(1), max(broadcast(0x1p-100F), scale)); }
inline f32x16 magnitude(f32x16 x) { return max(x, sub(zero(), x)); }

/// The largest magnitude; NaN if a number is NaN or infinite.
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

/// Writes the scales of blocks with these largest numbers as bf16 and returns them as floats, with one canonical NaN.
template<class Numbers>
inline f32x16 store_scales(std::uint16_t* out, f32x16 largest_numbers, float steps) {
  store_bf16(out, mul(largest_numbers, broadcast(Numbers::scale_margin / steps)));
  for (int i = 0; i < 16; ++i) out[i] = (out[i] & 0x7fff) > 0x7f80 ? 0x7fc0 : out[i];
  return load_bf16(out);
}

/// Writes n <= head_dim_max numbers in steps of their scale, which it returns as bf16. out: n rounded up to 16.
template<class Numbers>
inline std::uint16_t quantise(const float* x, std::size_t n, float steps, typename Numbers::integer* out) {
  float within[head_dim_max];
  for_chunks(
      n, [&](std::size_t i, std::size_t lanes) { store_some(within + i, within_f16(load_some(x + i, lanes)), lanes); });
  std::uint16_t scales[16];
  const f32x16 inverse = inverse_of(store_scales<Numbers>(scales, broadcast(largest_of(within, n)), steps));
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    store_integers_of(out + i, whole_steps(load_some(within + i, lanes), inverse, steps));
  });
  return scales[0];
}

template<class Numbers>
inline std::uint16_t* key_scales(std::byte* tile, std::size_t head_dim) {
  return reinterpret_cast<std::uint16_t*>(tile + tile_integer_bytes(Numbers::type, head_dim));
}

template<class Numbers>
inline void store_integers(const kv_view& kv, std::size_t slot, std::size_t head_dim, const float* key,
                           const float* value) {
  typename Numbers::integer steps[head_dim_max];
  std::byte* tile = key_tile(kv, slot, head_dim);
  const std::size_t lane = slot % tile_tokens;
  const auto put = [&](std::byte* word, std::size_t place, std::size_t i) {
    std::memcpy(word + place_in_word(Numbers::type, place), steps + i, sizeof(steps[i]));
  };
  for (std::size_t block = 0; block < integer_key_blocks(head_dim); ++block) {
    const std::size_t first = block * integer_key_block;
    const std::size_t n = std::min(integer_key_block, head_dim - first);
    key_scales<Numbers>(tile, head_dim)[block * tile_tokens + lane] =
        quantise<Numbers>(key + first, n, Numbers::key_steps, steps);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t d = first + i;
      put(tile + (d / per_word<Numbers> * tile_tokens + lane) * 4, d % per_word<Numbers>, i);
    }
  }
  const std::uint16_t scale = quantise<Numbers>(value, head_dim, Numbers::value_steps, steps);
  std::memcpy(value_scale(kv, slot, head_dim), &scale, sizeof(scale));
  std::byte* words = value_words(kv, slot, head_dim);
  for (std::size_t d = 0; d < head_dim; ++d) put(words + d * 4, slot % per_word<Numbers>, d);
}

/// The dimensions of a word of sixteen tokens as floats, in order: to[i] is tile_tokens floats after to[i - 1].
inline void widen_word(quads16, const std::byte* word, f32x16 scale, float* to) {
  const words16 quad = load_words(word);
  store(to, mul(signed_byte<0>(quad), scale));
  store(to + tile_tokens, mul(signed_byte<2>(quad), scale));
  store(to + 2 * tile_tokens, mul(signed_byte<1>(quad), scale));
  store(to + 3 * tile_tokens, mul(signed_byte<3>(quad), scale));
}
inline void widen_word(pairs16, const std::byte* word, f32x16 scale, float* to) {
  const words16 pair = load_words(word);
  store(to, mul(signed_short<0>(pair), scale));
  store(to + tile_tokens, mul(signed_short<1>(pair), scale));
}
/// steps(i): the steps of the i-th dimension of a word.
template<class Steps>
inline words16 join_word(quads16, Steps steps) {
  return join_bytes(steps(0), steps(2), steps(1), steps(3));
}
template<class Steps>
inline words16 join_word(pairs16, Steps steps) {
  return join_shorts(steps(0), steps(1));
}

/// Rotates tokens [begin, begin + count) of a tile: the blocks with rotated dimensions become floats and then steps
/// again.
template<class Numbers>
inline void rotate_integer_tile(std::byte* tile, std::size_t begin, std::size_t count, rope_pairs pairs,
                                rope_angles angles, std::size_t rotary_dim, std::size_t head_dim) {
  alignas(64) float numbers[rotary_dim_max * tile_tokens];  // [dimension][token]
  using words = typename Numbers::words;
  constexpr std::size_t step = per_word<Numbers>;
  const std::size_t half = rotary_dim / 2;
  const std::size_t end = std::min(head_dim, round_up(rotary_dim, integer_key_block));
  std::uint16_t* scales = key_scales<Numbers>(tile, head_dim);
  for (std::size_t d = 0; d < end; d += step) {
    const f32x16 scale = load_bf16(scales + d / integer_key_block * tile_tokens);
    widen_word(words{}, tile + d / step * tile_tokens * 4, scale, numbers + d * tile_tokens);
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
  for (std::size_t first = 0; first < end; first += integer_key_block) {
    const std::size_t last = std::min(end, first + integer_key_block);
    f32x16 top = zero();
    f32x16 bad = zero();
    for (std::size_t d = first; d < last; ++d) {
      const f32x16 x = within_f16(load(numbers + d * tile_tokens));
      store(numbers + d * tile_tokens, x);
      top = max(top, magnitude(x));
      bad = fma(x, zero(), bad);
    }
    std::uint16_t own[16];
    const f32x16 inverse = inverse_of(store_scales<Numbers>(own, add(top, bad), Numbers::key_steps));
    std::copy_n(own + begin, count, scales + first / integer_key_block * tile_tokens + begin);
    for (std::size_t d = first; d < last; d += step) {
      const auto steps = [&](std::size_t i) {
        return whole_steps(load(numbers + (d + i) * tile_tokens), inverse, Numbers::key_steps);
      };
      alignas(64) std::byte word[tile_tokens * 4];
      store_words(word, join_word(words{}, steps));
      std::memcpy(tile + (d / step * tile_tokens + begin) * 4, word + begin * 4, count * 4);
    }
  }
}
