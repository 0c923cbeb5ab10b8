// Stores one token's key and value in their slot.

template<class T>
inline void scatter_key(const T* key, std::size_t head_dim, std::byte* tile, std::size_t lane) {
  T* to = reinterpret_cast<T*>(tile) + lane;
  for (std::size_t d = 0; d < head_dim; ++d) to[d * tile_tokens] = key[d];
}

void store_kv(const kv_view& kv, std::size_t slot, std::size_t head_dim, const float* key, const float* value) {
  if (kv.type == element_type::q8_0) return store_integers<q8_numbers>(kv, slot, head_dim, key, value);
  if (kv.type == element_type::i16) return store_integers<i16_numbers>(kv, slot, head_dim, key, value);
  std::byte* tile = key_tile(kv, slot, head_dim);
  narrow(kv.type, value, head_dim, value_row(kv, slot, head_dim));
  if (kv.type == element_type::f32) {
    scatter_key(key, head_dim, tile, slot % tile_tokens);
    return;
  }
  for_chunks(head_dim, [&](std::size_t d, std::size_t lanes) {
    std::uint16_t rounded[16];
    narrow(kv.type, key + d, lanes, rounded);
    scatter_key(rounded, lanes, tile + d * tile_tokens * 2, slot % tile_tokens);
  });
}
