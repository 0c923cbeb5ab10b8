// Attention over integer keys and values (q8_0, i16) by integer products. Integer sums are exact, so a target's
// instructions, the blocking, and the tokens' slots change no bit; floats only join the sums, in one order:
//
// score = sum over the blocks of integer_key_block dimensions, in order, of (d_q d_k) times the integer sum. The
// rotated query is rounded to steps of -query_steps..query_steps per block. output = sum over the blocks of
// attention_block_tokens, in order, of d_w times the integer sum over the block's tokens that the row sees. A token's
// weight times the scale of its value is rounded to steps of 0..weight_steps per block and query vector.
//
// No integer sum over seen tokens overflows: 128 * 128 * 32767, 32 * 8191 * 8191 and 128 * 4095 * 4095 are below 2^31.
// Sums over other tokens may wrap around, but are not used. If a query is not finite or a scale is NaN, the scores or
// the sums are NaN.

inline quads16 load_word(quads16, const std::byte* p) { return load_quads(p); }
inline pairs16 load_word(pairs16, const std::byte* p) { return load_pairs(p); }

struct integer_attention : attention_work {
  std::size_t words;      // number of words along the dimensions
  std::size_t blocks;     // number of blocks along the dimensions
  std::int16_t* queries;  // [offset_count][vectors][words][per word]
  float* query_scales;    // [offset_count][vectors][blocks]
  float* rotated;         // [head_dim]
  std::int16_t* weights;  // [vectors], weights_stride apart: [words of tokens][per word]
  float* weight_scales;   // [vectors]
};

/// Converts query vector v to steps, for the keys of an offset.
template<class Numbers>
inline void quantise_query(const integer_attention& w, std::size_t offset, std::size_t v) {
  const attention_args& a = w.a;
  rotate_query(a, offset, v, w.rotated);
  const std::size_t at = offset * w.vectors + v;
  std::int16_t* factors = w.queries + at * w.words * per_word<Numbers>;
  for (std::size_t block = 0; block < w.blocks; ++block) {
    const std::size_t first = block * integer_key_block;
    const std::size_t n = std::min(integer_key_block, a.head_dim - first);
    const float scale = largest_of(w.rotated + first, n) * (1 / Numbers::query_steps);
    const f32x16 inverse = inverse_of(broadcast(scale));
    for_chunks(n, [&](std::size_t i, std::size_t lanes) {
      std::int16_t steps[16];
      // Lanes beyond are zeros. A NaN becomes the second operand; its block's scale is NaN.
      const f32x16 x = mul(load_some(w.rotated + first + i, lanes), inverse);
      store_i16(steps, min(broadcast(Numbers::query_steps), max(x, broadcast(-Numbers::query_steps))));
      std::copy_n(steps, round_up(lanes, per_word<Numbers>), factors + first + i);
    });
    w.query_scales[at * w.blocks + block] = scale;
  }
}

/// Scores of some query vectors with whole tiles of keys. The layout of the vectors is as in integer_attention.
struct key_product {
  const std::byte* const* tiles;
  std::size_t words;
  std::size_t blocks;
  const std::int16_t* queries;
  const float* scales;
  float* y;
  std::size_t y_stride;
};

template<class Numbers, int Rows, int Tiles>
void multiply_keys(const key_product& t) {
  using words = typename Numbers::words;
  constexpr std::size_t words_max = integer_key_block / per_word<Numbers>;
  const std::byte* scales[Tiles];
#pragma GCC unroll 4
  for (int p = 0; p < Tiles; ++p) scales[p] = t.tiles[p] + t.words * tile_tokens * 4;
  for (std::size_t block = 0; block < t.blocks; ++block) {
    i32x16 acc[Rows][Tiles];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < Tiles; ++p) acc[r][p] = no_integers();
    }
    const std::size_t end = std::min(t.words, (block + 1) * words_max);
    for (std::size_t k = block * words_max; k < end; ++k) {
      words keys[Tiles];
#pragma GCC unroll 4
      for (int p = 0; p < Tiles; ++p) keys[p] = load_word(words{}, t.tiles[p] + k * tile_tokens * 4);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const std::int16_t* factors = t.queries + (r * t.words + k) * per_word<Numbers>;
#pragma GCC unroll 4
        for (int p = 0; p < Tiles; ++p) acc[r][p] = dot(acc[r][p], keys[p], factors);
      }
    }
#pragma GCC unroll 4
    for (int p = 0; p < Tiles; ++p) {
      const auto* key_scales = reinterpret_cast<const std::uint16_t*>(scales[p]) + block * tile_tokens;
      const f32x16 of_keys = load_bf16(key_scales);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        float* y = t.y + r * t.y_stride + p * tile_tokens;
        const f32x16 scale = mul(broadcast(t.scales[r * t.blocks + block]), of_keys);
        store(y, fma(scale, to_floats(acc[r][p]), block == 0 ? zero() : load(y)));
      }
    }
  }
}

/// Outputs of some query vectors, 16 dimensions per chunk: sums += scale * (weights . values).
struct value_product {
  const std::byte* const* words;
  std::size_t at;     // position of the first chunk in each word
  std::size_t count;  // number of words
  const std::int16_t* weights;
  std::size_t weights_stride;
  const float* scales;
  float* sums;
  std::size_t width;
};

template<class Numbers, int Rows, int Chunks>
void multiply_values(const value_product& t) {
  using words = typename Numbers::words;
  i32x16 acc[Rows][Chunks];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int c = 0; c < Chunks; ++c) acc[r][c] = no_integers();
  }
  for (std::size_t k = 0; k < t.count; ++k) {
    words values[Chunks];
#pragma GCC unroll 4
    for (int c = 0; c < Chunks; ++c) values[c] = load_word(words{}, t.words[k] + t.at + c * 64);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const std::int16_t* factors = t.weights + r * t.weights_stride + k * per_word<Numbers>;
#pragma GCC unroll 4
      for (int c = 0; c < Chunks; ++c) acc[r][c] = dot(acc[r][c], values[c], factors);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    const f32x16 scale = broadcast(t.scales[r]);
#pragma GCC unroll 4
    for (int c = 0; c < Chunks; ++c) {
      float* sums = t.sums + r * t.width + c * 16;
      store(sums, fma(scale, to_floats(acc[r][c]), load(sums)));
    }
  }
}

/// The greatest power of two of vectors, up to 4, for which the accumulators suffice with `rows` rows.
constexpr int integers_beside(int rows) {
  int vectors = 4;
  while (vectors > 1 && vectors * rows > integer_accumulators) vectors /= 2;
  return vectors;
}

template<class Numbers, int Rows, int Vectors>
constexpr auto keys_or_null() {
  if constexpr (Vectors <= integers_beside(Rows)) return &multiply_keys<Numbers, Rows, Vectors>;
  return static_cast<void (*)(const key_product&)>(nullptr);
}
template<class Numbers, int Rows, int Vectors>
constexpr auto values_or_null() {
  if constexpr (Vectors <= integers_beside(Rows)) return &multiply_values<Numbers, Rows, Vectors>;
  return static_cast<void (*)(const value_product&)>(nullptr);
}
template<class F>
using by_size = std::array<std::array<F, 3>, integer_rows_max>;  // [rows - 1][log2(vectors)]

template<class Numbers, int... Rows>
constexpr auto key_products(std::integer_sequence<int, Rows...>) {
  return by_size<void (*)(const key_product&)>{
      {{keys_or_null<Numbers, Rows + 1, 1>(), keys_or_null<Numbers, Rows + 1, 2>(),
        keys_or_null<Numbers, Rows + 1, 4>()}...}};
}
template<class Numbers, int... Rows>
constexpr auto value_products(std::integer_sequence<int, Rows...>) {
  return by_size<void (*)(const value_product&)>{
      {{values_or_null<Numbers, Rows + 1, 1>(), values_or_null<Numbers, Rows + 1, 2>(),
        values_or_null<Numbers, Rows + 1, 4>()}...}};
}
template<class Numbers>
inline constexpr auto key_products_by_size = key_products<Numbers>(std::make_integer_sequence<int, integer_rows_max>{});
template<class Numbers>
inline constexpr auto value_products_by_size =
    value_products<Numbers>(std::make_integer_sequence<int, integer_rows_max>{});

inline std::size_t widest_integers(std::size_t vectors) {
  return static_cast<std::size_t>(integers_beside(static_cast<int>(std::min<std::size_t>(vectors, integer_rows_max))));
}

/// Calls body(first, height) for blocks of about equal height of the query vectors [first, end).
template<class Body>
inline void for_vector_blocks(std::size_t first, std::size_t end, Body body) {
  const auto blocks = (end - first + integer_rows_max - 1) / integer_rows_max;
  for (std::size_t i = 0, v = first; i < blocks; ++i) {
    const std::size_t next = first + (end - first) * (i + 1) / blocks;
    body(v, next - v);
    v = next;
  }
}

/// The query vectors [first, end).
struct vector_range {
  std::size_t first;
  std::size_t end;
};

/// Computes scores[v][token] for some vectors.
template<class Numbers>
void score_integers(const integer_attention& w, const block_part* parts, std::size_t count, vector_range vectors,
                    tokens_ahead& ahead) {
  const attention_args& a = w.a;
  const std::size_t widest = widest_integers(vectors.end - vectors.first);
  for (std::size_t i = 0; i < count;) {
    const block_part& first = parts[i];
    std::size_t whole = 0;
    while (whole < widest && i + whole < count && parts[i + whole].count == tile_tokens &&
           parts[i + whole].offset_index == first.offset_index) {
      ++whole;
    }
    const std::size_t together = std::bit_floor(std::max<std::size_t>(whole, 1));
    const auto log2_together = static_cast<std::size_t>(std::countr_zero(together));
    const std::byte* at[4];
    for (std::size_t p = 0; p < together; ++p) at[p] = key_tile(a.kv, parts[i + p].slot, a.head_dim);
    for_vector_blocks(vectors.first, vectors.end, [&](std::size_t v, std::size_t height) {
      const std::size_t query = first.offset_index * w.vectors + v;
      key_product t{.tiles = at,
                    .words = w.words,
                    .blocks = w.blocks,
                    .queries = w.queries + query * w.words * per_word<Numbers>,
                    .scales = w.query_scales + query * w.blocks,
                    .y = w.scores + v * attention_score_stride + first.token,
                    .y_stride = attention_score_stride};
      if (whole == 0) {
        t.y = w.odd_scores;
        t.y_stride = tile_tokens;
      }
      key_products_by_size<Numbers>[height - 1][log2_together](t);
      for (std::size_t r = 0; whole == 0 && r < height; ++r) {
        const float* lanes = w.odd_scores + r * tile_tokens + first.slot % tile_tokens;
        std::copy_n(lanes, first.count, w.scores + (v + r) * attention_score_stride + first.token);
      }
    });
    for (std::size_t p = 0; p < together; ++p) ahead.next(parts[i + p].count);
    i += together;
  }
}

/// The values of a block's tokens: words as stored, and the position of each part's weights in them. A word also
/// contains other tokens if a part begins or ends within it; their weights are zeros.
struct block_values {
  std::size_t count = 0;                             // number of words
  const std::byte* words[attention_block_tokens];    // each has at least one of the tokens
  std::size_t first_weight[attention_block_tokens];  // by part
  bool straight = false;                             // weights are in the order of the tokens
  alignas(64) float scales[attention_block_tokens];  // by token
};

template<class Numbers>
inline void find_values(const attention_args& a, const block_part* parts, std::size_t parts_count, block_values& b) {
  constexpr std::size_t together = per_word<Numbers>;
  b.straight = true;
  for (std::size_t i = 0; i < parts_count; ++i) {
    const block_part& part = parts[i];
    b.first_weight[i] = b.count * together + part.slot % together;
    b.straight = b.straight && b.first_weight[i] == part.token;
    const std::byte* words = value_words(a.kv, part.slot, a.head_dim);
    for (std::size_t slot = part.slot / together; slot <= (part.slot + part.count - 1) / together; ++slot) {
      b.words[b.count++] = words;
      words += round_up(a.head_dim, 16) * 4;
    }
    const std::byte* scales = value_scale(a.kv, part.slot, a.head_dim);
    for (std::size_t j = 0; j < part.count; ++j) {
      std::uint16_t bits;
      std::memcpy(&bits, scales + j * sizeof(bits), sizeof(bits));
      b.scales[part.token + j] = std::bit_cast<float>(std::uint32_t{bits} << 16);
    }
  }
}

/// The stride for one query vector, for a block with `words` words of tokens; a store of 16 may exceed the last word.
template<class Numbers>
constexpr std::size_t weights_stride(std::size_t words) {
  return words * per_word<Numbers> + 32;
}

/// The second operands turn a NaN into 0; lanes of unseen tokens are 0 or NaN.
template<class Numbers>
inline f32x16 weight_in_steps(f32x16 weight, f32x16 inverse) {
  return min(broadcast(Numbers::weight_steps), max(mul(weight, inverse), zero()));
}

/// The scale of weights, from the largest and the invalid values of each lane: NaN if any weight is NaN.
template<class Numbers>
inline f32x16 keep_weight_scale(const integer_attention& w, std::size_t v, f32x16 top, f32x16 bad) {
  const float scale = (largest(top) + sum(bad)) * (1 / Numbers::weight_steps);
  w.weight_scales[v] = scale;
  return inverse_of(broadcast(scale));
}

/// A variant of quantise_weights for a whole block whose weights are available and ordered as its tokens.
template<class Numbers>
inline void quantise_whole(const integer_attention& w, std::size_t v, const f32x16 (&e)[attention_block_tokens / 16],
                           const block_values& b) {
  constexpr std::size_t chunks = attention_block_tokens / 16;
  f32x16 x[chunks];
  f32x16 top = zero();
  f32x16 bad = zero();
#pragma GCC unroll 8
  for (std::size_t c = 0; c < chunks; ++c) {
    x[c] = mul(e[c], load(b.scales + c * 16));
    top = max(top, x[c]);
    bad = fma(x[c], zero(), bad);
  }
  const f32x16 inverse = keep_weight_scale<Numbers>(w, v, top, bad);
  std::int16_t* out = w.weights + v * weights_stride<Numbers>(b.count);
#pragma GCC unroll 8
  for (std::size_t c = 0; c < chunks; ++c) store_i16(out + c * 16, weight_in_steps<Numbers>(x[c], inverse));
}

/// Converts vector v's weights of the block's tokens to steps; those of tokens that it does not see become zeros.
template<class Numbers>
void quantise_weights(const integer_attention& w, std::size_t v, const seen_tokens& seen_of_block,
                      const block_part* parts, std::size_t parts_count, const block_values& b) {
  constexpr std::size_t together = per_word<Numbers>;
  float* weights = w.scores + v * attention_score_stride;
  const std::size_t from = seen_of_block.from, n = seen_of_block.to;
  std::fill(weights + parts[0].token, weights + from, 0.0F);
  f32x16 top = zero();
  f32x16 bad = zero();
  for_chunks(n - from, [&](std::size_t i, std::size_t lanes) {
    const f32x16 x = mul(load_some(weights + from + i, lanes), load_some(b.scales + from + i, lanes));
    store_some(weights + from + i, x, lanes);
    top = max(top, x);
    bad = fma(x, zero(), bad);
  });
  const f32x16 inverse = keep_weight_scale<Numbers>(w, v, top, bad);
  std::int16_t* out = w.weights + v * weights_stride<Numbers>(b.count);
  for (std::size_t i = 0; i < parts_count; ++i) {
    const block_part& part = parts[i];
    std::int16_t* to = out + b.first_weight[i];
    const std::size_t lead = part.slot % together;
    std::fill_n(to - lead, lead, std::int16_t{0});
    const std::size_t seen = n <= part.token ? 0 : std::min(n - part.token, part.count);
    store_i16(to, weight_in_steps<Numbers>(load_some(weights + part.token, seen), inverse));
  }
}

template<class Numbers>
void add_integer_values(const integer_attention& w, const block_values& b, vector_range vectors) {
  for_vector_blocks(vectors.first, vectors.end, [&](std::size_t v, std::size_t height) {
    const std::size_t widest = widest_integers(height);
    for (std::size_t d = 0; d < w.width;) {
      const std::size_t chunks = std::bit_floor(std::min(widest, (w.width - d) / 16));
      value_products_by_size<Numbers>[height - 1][static_cast<std::size_t>(std::countr_zero(chunks))](
          {.words = b.words,
           .at = d * 4,
           .count = b.count,
           .weights = w.weights + v * weights_stride<Numbers>(b.count),
           .weights_stride = weights_stride<Numbers>(b.count),
           .scales = w.weight_scales + v,
           .sums = w.one.sums + v * w.width + d,
           .width = w.width});
      d += chunks * 16;
    }
  });
}

/// Processes the tokens [first, first + count) of the table, whose tiles begin at `tile`; advances `tile`.
template<class Numbers>
void attend_integers(const integer_attention& w, std::size_t first, std::size_t count, std::size_t& tile) {
  const attention_args& a = w.a;
  const auto seen_by = [&](std::size_t row) { return seen_in_block(a, row, first, count); };
  block_part parts[attention_block_tokens];
  const std::size_t parts_count = parts_of_block(a, first, seen_by(0).from, count, tile, parts);
  // Earlier rows see no token of the block, nor do later rows whose window begins after it.
  const std::size_t first_row = first < a.visible ? 0 : first - a.visible + 1;
  std::size_t end_row = a.rows;
  while (seen_by(end_row - 1).from == count) --end_row;
  const vector_range vectors{first_row * a.group, end_row * a.group};
  tokens_ahead ahead(a, tile);
  score_integers<Numbers>(w, parts, parts_count, vectors, ahead);
  ahead.next(attention_block_tokens);
  block_values values;
  find_values<Numbers>(a, parts, parts_count, values);
  for (std::size_t v = vectors.first; v < vectors.end; ++v) {
    const seen_tokens seen = seen_by(v / a.group);
    const bool is_done = weigh_scores(w, v, seen, [&](const auto& e) {
      if (values.straight) quantise_whole<Numbers>(w, v, e, values);
      return values.straight;
    });
    if (!is_done) quantise_weights<Numbers>(w, v, seen, parts, parts_count, values);
  }
  add_integer_values<Numbers>(w, values, vectors);
}

template<class Numbers>
void attention_by_integers_of(const attention_args& a) {
  if (a.rows == 0) return;
  scratch_floats scratch(a);
  const std::size_t queries = a.offset_count * a.rows * a.group;
  const std::size_t words = integer_words(Numbers::type, a.head_dim);
  const std::size_t blocks = integer_key_blocks(a.head_dim);
  integer_attention w{start_attention(a, scratch), words, blocks, nullptr, nullptr, nullptr, nullptr, nullptr};
  const auto take = [&]<class T>(T*& at, std::size_t count) {
    at = reinterpret_cast<T*>(scratch.take((count * sizeof(T) + sizeof(float) - 1) / sizeof(float)));
  };
  take(w.queries, queries * words * per_word<Numbers>);
  take(w.query_scales, queries * blocks);
  take(w.rotated, a.head_dim);
  take(w.weights, w.vectors * weights_stride<Numbers>(attention_block_tokens));
  take(w.weight_scales, w.vectors);
  for (std::size_t offset = 0; offset < a.offset_count; ++offset) {
    for (std::size_t v = 0; v < w.vectors; ++v) quantise_query<Numbers>(w, offset, v);
  }
  attend_all(w, [&](std::size_t first, std::size_t count, std::size_t& tile) {
    attend_integers<Numbers>(w, first, count, tile);
  });
}

void attention_by_integers(const attention_args& a) {
  if (a.kv.type == element_type::q8_0) return attention_by_integers_of<q8_numbers>(a);
  attention_by_integers_of<i16_numbers>(a);
}
