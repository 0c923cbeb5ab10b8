// Where attention finds keys and values: tiles, rows, and the parts of a block of tokens.

inline const std::byte* key_tile(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  const std::size_t tile_bytes = tile_tokens * head_dim * bytes_of(kv.type);
  return kv.keys + slot / kv_page_tokens * kv.page_stride_bytes + slot % kv_page_tokens / tile_tokens * tile_bytes;
}

inline std::size_t value_row_bytes(const kv_view& kv, std::size_t head_dim) {
  return round_up(head_dim, 16) * bytes_of(kv.type);
}
inline const std::byte* value_row(const kv_view& kv, std::size_t slot, std::size_t head_dim) {
  return kv.values + slot / kv_page_tokens * kv.page_stride_bytes +
         slot % kv_page_tokens * value_row_bytes(kv, head_dim);
}

/// The tokens of one tile that are in the block.
struct block_part {
  std::size_t slot;
  std::size_t token;  // in the block
  std::size_t count;
  std::size_t offset_index;
};

/// Tokens of the block at `first` that a row which sees `seen` tokens sees.
inline std::size_t seen_in_block(std::size_t seen, std::size_t first) {
  return seen <= first ? 0 : std::min(seen - first, attention_block_tokens);
}

/// The parts of the block of tokens [first, first + count), whose tiles begin at `tile`; moves `tile` on. Returns how
/// many.
inline std::size_t parts_of_block(const attention_args& a, std::size_t first, std::size_t count, std::size_t& tile,
                                  block_part (&parts)[attention_block_tokens]) {
  std::size_t parts_count = 0;
  for (std::size_t done = 0; done < count;) {
    const attention_tile& from = a.tiles[tile];
    const std::size_t skipped = first + done - from.first_token;
    const std::size_t length = std::min(from.count - skipped, count - done);
    parts[parts_count++] = {from.first_slot + skipped, done, length, from.offset_index};
    done += length;
    if (skipped + length == from.count) ++tile;
  }
  return parts_count;
}

/// Prefetches the keys and values of `count` tokens from `tile` on: pages are too short for the CPU's own prefetcher.
inline void prefetch_tokens(const attention_args& a, std::size_t tile, std::size_t count) {
  const std::size_t key_bytes = tile_tokens * a.head_dim * bytes_of(a.kv.type);
  for (std::size_t done = 0; done < count && tile < a.tile_count; ++tile) {
    const attention_tile& t = a.tiles[tile];
    const std::byte* keys = key_tile(a.kv, t.first_slot, a.head_dim);
    for (std::size_t i = 0; i < key_bytes; i += 64) prefetch(keys + i);
    const std::byte* values = value_row(a.kv, t.first_slot, a.head_dim);
    for (std::size_t i = 0; i < t.count * value_row_bytes(a.kv, a.head_dim); i += 64) prefetch(values + i);
    done += t.count;
  }
}
