// Rotates keys in place. Keys are stored dimension-major over the tokens of a tile, so a vector contains one dimension
// of sixteen tokens, and both pair layouts are the same work on different rows.

template<element_type Type>
inline f32x16 load_tokens(const std::byte* row) {
  if constexpr (Type == element_type::f32)
    return load(reinterpret_cast<const float*>(row));
  else if constexpr (Type == element_type::f16)
    return load_f16(reinterpret_cast<const std::uint16_t*>(row));
  else
    return load_bf16(reinterpret_cast<const std::uint16_t*>(row));
}
template<element_type Type>
inline void store_tokens(std::byte* row, f32x16 x) {
  if constexpr (Type == element_type::f32)
    store(reinterpret_cast<float*>(row), x);
  else if constexpr (Type == element_type::f16)
    store_f16(reinterpret_cast<std::uint16_t*>(row), within_f16(x));
  else
    store_bf16(reinterpret_cast<std::uint16_t*>(row), x);
}
/// Stores only lanes [begin, begin + count): the others may belong to another sequence.
template<element_type Type>
inline void store_some_tokens(std::byte* row, f32x16 x, std::size_t begin, std::size_t count) {
  alignas(64) std::byte all[tile_tokens * sizeof(float)];
  store_tokens<Type>(all, x);
  std::memcpy(row + begin * bytes_of(Type), all + begin * bytes_of(Type), count * bytes_of(Type));
}

template<element_type Type>
inline void rotate_key_tile(std::byte* tile, std::size_t begin, std::size_t count, rope_pairs pairs, rope_angles angles,
                            std::size_t half) {
  constexpr std::size_t row_bytes = tile_tokens * bytes_of(Type);
  for (std::size_t i = 0; i < half; ++i) {
    const dimension_pair at = pair_at(pairs, i, half);
    std::byte* row_a = tile + at.a * row_bytes;
    std::byte* row_b = tile + at.b * row_bytes;
    const f32x16 a = load_tokens<Type>(row_a);
    const f32x16 b = load_tokens<Type>(row_b);
    const f32x16 c = broadcast(angles[i]);
    const f32x16 s = broadcast(angles[half + i]);
    const f32x16 turned_a = sub(mul(a, c), mul(b, s));
    const f32x16 turned_b = add(mul(a, s), mul(b, c));
    if (count == tile_tokens) {
      store_tokens<Type>(row_a, turned_a);
      store_tokens<Type>(row_b, turned_b);
    } else {
      store_some_tokens<Type>(row_a, turned_a, begin, count);
      store_some_tokens<Type>(row_b, turned_b, begin, count);
    }
  }
}

void rotate_keys(const kv_view& kv, std::size_t first_slot, std::size_t count, rope_pairs pairs, rope_angles angles,
                 std::size_t rotary_dim, std::size_t head_dim) {
  while (count > 0) {
    const std::size_t begin = first_slot % tile_tokens;
    const std::size_t in_tile = std::min(count, tile_tokens - begin);
    std::byte* tile = key_tile(kv, first_slot, head_dim);
    switch (kv.type) {
      case element_type::f32:
        rotate_key_tile<element_type::f32>(tile, begin, in_tile, pairs, angles, rotary_dim / 2);
        break;
      case element_type::f16:
        rotate_key_tile<element_type::f16>(tile, begin, in_tile, pairs, angles, rotary_dim / 2);
        break;
      case element_type::bf16:
        rotate_key_tile<element_type::bf16>(tile, begin, in_tile, pairs, angles, rotary_dim / 2);
        break;
      case element_type::q8_0:
        rotate_integer_tile<q8_numbers>(tile, begin, in_tile, pairs, angles, rotary_dim, head_dim);
        break;
      case element_type::i16:
        rotate_integer_tile<i16_numbers>(tile, begin, in_tile, pairs, angles, rotary_dim, head_dim);
        break;
    }
    first_slot += in_tile;
    count -= in_tile;
  }
}
