// The parts of a block of tokens, and prefetching them.

/// The tokens of one tile that belong to the block.
struct block_part {
  std::size_t slot;
  std::size_t token;  // index in the block
  std::size_t count;
  std::size_t offset_index;
};

/// The first token of the block that contains a token.
inline std::size_t block_of(std::size_t token) { return token / attention_block_tokens * attention_block_tokens; }

/// The first token that a row of the call sees.
inline std::size_t first_seen(const attention_args& a, std::size_t row) {
  return window_begin(a.visible + row, a.window);
}

/// The tokens [from, to) of a block that a row sees; none if from >= to. `starts`: they are the first of a KV split
/// that the row sees.
struct seen_tokens {
  std::size_t from;
  std::size_t to;
  bool starts;
};
/// The tokens that a row sees of the block [first, first + count).
inline seen_tokens seen_in_block(const attention_args& a, std::size_t row, std::size_t first, std::size_t count) {
  const std::size_t begin = first_seen(a, row), end = a.visible + row;
  return {begin <= first ? 0 : std::min(begin - first, count), end <= first ? 0 : std::min(end - first, count),
          first % kv_split_tokens == 0 || begin >= first};
}

/// Finds the parts of the tokens [first + from, first + count), whose tiles begin at `tile`, in the block at `first`;
/// advances `tile`. Returns their number.
inline std::size_t parts_of_block(const attention_args& a, std::size_t first, std::size_t from, std::size_t count,
                                  std::size_t& tile, block_part (&parts)[attention_block_tokens]) {
  std::size_t parts_count = 0;
  for (std::size_t done = from; done < count;) {
    const attention_tile& whole = a.tiles[tile];
    const std::size_t skipped = first + done - whole.first_token;
    const std::size_t length = std::min(whole.count - skipped, count - done);
    parts[parts_count++] = {whole.first_slot + skipped, done, length, whole.offset_index};
    done += length;
    if (skipped + length == whole.count) ++tile;
  }
  return parts_count;
}

inline void prefetch_bytes(const std::byte* from, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += 64) prefetch_far(from + i);
}

/// Prefetches the keys and values of the next block while this one is computed: pages are too short for the CPU's own
/// prefetcher. It works tile by tile into the second-level cache, because the first level has few miss buffers.
class tokens_ahead {
 public:
  /// Starts at `tile`.
  tokens_ahead(const attention_args& a, std::size_t tile) : a_(a), tile_(tile) {}
  /// Prefetches this many more tokens, at most a block in total.
  void next(std::size_t tokens) {
    wanted_ = std::min(wanted_ + tokens, attention_block_tokens);
    for (; done_ < wanted_ && tile_ < a_.tile_count; ++tile_) {
      const attention_tile& t = a_.tiles[tile_];
      prefetch_bytes(key_tile(a_.kv, t.first_slot, a_.head_dim), kv_tile_bytes(a_.kv.type, a_.head_dim));
      if (holds_integers(a_.kv.type)) {
        const std::byte* first = value_words(a_.kv, t.first_slot, a_.head_dim);
        const std::byte* last = value_words(a_.kv, t.first_slot + t.count - std::size_t{1}, a_.head_dim);
        prefetch_bytes(first, static_cast<std::size_t>(last - first) + round_up(a_.head_dim, 16) * 4);
        prefetch_far(value_scale(a_.kv, t.first_slot, a_.head_dim));
      } else {
        prefetch_bytes(value_row(a_.kv, t.first_slot, a_.head_dim), t.count * value_row_bytes(a_.kv.type, a_.head_dim));
      }
      done_ += t.count;
    }
  }

 private:
  const attention_args& a_;
  std::size_t tile_;
  std::size_t wanted_ = 0;
  std::size_t done_ = 0;
};
