// Attention with bf16 tiles, in the blocks of attention.inl.hpp: 16 tokens of keys are a panel whose columns are the
// dimensions, 16 dimensions of values a panel whose columns are the block's tokens, and query vectors are rows.
//
// Order of every sum: scores and output sums follow the order of all tile products, the latter along the block's tokens
// in table order. Tokens that a row does not see have a weight of +0. Their values count as zeros if no row of the call
// sees them; values that are not finite are added only to rows that see them. This can only change the sign of a zero,
// and zeros are written as +0. So a row's bits depend only on the tokens that it sees.

inline constexpr std::size_t block_tiles = attention_block_tokens / tile_columns;

/// Data shared by the steps of one call. `padded`: vectors rounded up to whole tiles.
struct tile_attention {
  const attention_args& a;
  std::size_t vectors;
  std::size_t padded;
  std::size_t width;       // head_dim rounded up to whole chunks
  std::size_t key_tiles;   // along the dimensions
  std::uint16_t* queries;  // [offset_count][padded / 16][key_tiles] tiles, rotated
  float* scores;           // [padded][attention_score_stride]
  float* odd_scores;       // [padded][16], for a partial key tile
  float* tops;             // [padded] highest score so far
  float* totals;           // [padded][16]: sums of the weights
  std::uint16_t* weights;  // [padded / 16][block_tiles] tiles
  float* sums;             // [padded][width]: sums of weighted values
  std::uint16_t* keys;     // [panel][key_tiles] tiles
  std::uint16_t* values;   // [width / 16][block_tiles] tiles
};

/// Calls body.operator()<Format>() for the panel format that stores this type.
template<class Body>
inline auto with_element(element_type type, Body body) {
  switch (type) {
    case element_type::f32:
    case element_type::q8_0:
    case element_type::i16:
      break;
    case element_type::f16:
      return body.template operator()<f16_format>();
    case element_type::bf16:
      return body.template operator()<bf16_format>();
  }
  return body.template operator()<f32_format>();
}

void score_by_tiles(const tile_attention& w, const block_part* parts, std::size_t count, tokens_ahead& ahead) {
  const attention_args& a = w.a;
  const std::size_t widest = w.padded == 16 ? 4 : 2;
  const std::size_t query_numbers = w.padded / 16 * w.key_tiles * tile_numbers;  // for one offset
  tile_block b{.x = nullptr,
               .x_step = w.key_tiles * tile_numbers,
               .panels = nullptr,
               .expand = with_element(a.kv.type, []<class F>() -> expand_tile_function { return expand_tile<F>; }),
               .first_tile = 0,
               .depth = w.key_tiles,
               .columns = a.head_dim,
               .w = w.keys,
               .w_tiles = w.key_tiles,
               .w_mask = every_tile,
               .y = nullptr,
               .y_stride = attention_score_stride,
               .rows = 0,
               .lanes = 0,
               .first = true,
               .bias = nullptr};
  for (std::size_t i = 0; i < count;) {
    const block_part& first = parts[i];
    std::size_t whole = 0;
    while (whole < widest && i + whole < count && parts[i + whole].count == tile_tokens &&
           parts[i + whole].offset_index == first.offset_index) {
      ++whole;
    }
    const std::size_t together = std::bit_floor(std::max<std::size_t>(whole, 1));
    const std::byte* at[tile_panels_max];
    for (std::size_t p = 0; p < together; ++p) at[p] = key_tile(a.kv, parts[i + p].slot, a.head_dim);
    b.x = w.queries + first.offset_index * query_numbers;
    b.panels = at;
    b.lanes = together * tile_tokens;
    b.y = whole == 0 ? w.odd_scores : w.scores + first.token;
    b.y_stride = whole == 0 ? tile_tokens : attention_score_stride;
    multiply_rows(b, w.padded, together);
    for (std::size_t v = 0; whole == 0 && v < w.vectors; ++v) {
      const float* lanes = w.odd_scores + v * tile_tokens + first.slot % tile_tokens;
      std::copy_n(lanes, first.count, w.scores + v * attention_score_stride + first.token);
    }
    for (std::size_t p = 0; p < together; ++p) ahead.next(parts[i + p].count);
    i += together;
  }
}

/// 2^t for t <= 0 within 3e-6, far less than rounding to bf16 loses; never a denormal number.
inline __m512 power_of_two(__m512 t) {
  t = _mm512_max_ps(_mm512_set1_ps(-126), t);
  const __m512 r = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF);  // t - floor(t)
  __m512 p = _mm512_set1_ps(0.013426684F);                      // minimax on [0, 1], exact at 0
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.052242473F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.2412802F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.69304484F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
  return _mm512_scalef_ps(p, t);  // p * 2^floor(t)
}

/// The factor for powers of two instead of e.
inline float tile_weight_scale(const attention_args& a) { return weight_scale(a) * 1.44269504F; }

/// The lanes of the chunk at token i that are seen.
inline __mmask16 seen_lanes(const seen_tokens& seen, std::size_t i) {
  const auto first = [&](std::size_t n) { return first_lanes(n <= i ? 0 : std::min<std::size_t>(n - i, 16)); };
  return static_cast<__mmask16>(first(seen.to) & ~first(seen.from));
}

/// Converts vector v's scores of the block's tokens that it sees to weights, sets those of other tokens to zero, and
/// scales its sums to the new maximum. tiles: number of tiles along the tokens.
void weigh_tile_scores(const tile_attention& w, std::size_t v, const seen_tokens& seen, std::size_t tiles) {
  float* scores = w.scores + v * attention_score_stride;
  const bool is_first_block = seen.starts;
  std::uint16_t* weights = w.weights + (v / 16 * block_tiles * 16 + v % 16) * tile_columns;
  if (seen.from >= seen.to) {
    for (std::size_t t = 0; t < tiles; ++t) store(weights + t * tile_numbers, bf16x32{_mm512_setzero_si512()});
    return;
  }
  if (w.a.soft_cap > 0) {
    cap_all(scores + seen.from, seen.to - seen.from, w.a.scale / w.a.soft_cap, w.a.soft_cap);
  }
  __m512 highest = _mm512_set1_ps(scores[seen.from]);
  for (std::size_t i = seen.from / 16 * 16; i < seen.to; i += 16) {
    highest = _mm512_max_ps(highest, _mm512_mask_loadu_ps(highest, seen_lanes(seen, i), scores + i));
  }
  const float before = w.tops[v];
  const float top = is_first_block ? largest({highest}) : std::max(before, largest({highest}));
  w.tops[v] = top;
  const float scale = tile_weight_scale(w.a);
  __m512 total = _mm512_setzero_ps();
  if (!is_first_block) {
    total = _mm512_loadu_ps(w.totals + v * 16);
    if (top != before) {
      const __m512 shrink = power_of_two(_mm512_set1_ps((before - top) * scale));
      total = _mm512_mul_ps(total, shrink);
      float* sums = w.sums + v * w.width;
      for (std::size_t d = 0; d < w.width; d += 16) {
        _mm512_storeu_ps(sums + d, _mm512_mul_ps(_mm512_loadu_ps(sums + d), shrink));
      }
    }
  }
  const __m512 factor = _mm512_set1_ps(scale);
  const __m512 shift = _mm512_set1_ps(-top * scale);
  const auto weights_from = [&](std::size_t i) {
    const __m512 e = power_of_two(_mm512_fmadd_ps(_mm512_loadu_ps(scores + i), factor, shift));
    const __m512 weight = _mm512_maskz_mov_ps(seen_lanes(seen, i), e);
    total = _mm512_add_ps(total, weight);
    return f32x16{weight};
  };
  for (std::size_t t = 0; t < tiles; ++t) {
    const f32x16 low = weights_from(t * tile_columns);
    const f32x16 high = weights_from(t * tile_columns + 16);
    store(weights + t * tile_numbers, narrow_both(low, high));
  }
  _mm512_storeu_ps(w.totals + v * 16, total);
}

/// The values of a block's tokens, with zeros for tokens that no row of the call sees.
template<class Format>
class block_values {
 public:
  block_values(const attention_args& a, const block_part* parts, std::size_t parts_count, std::size_t count)
      : from_(parts[0].token), to_(count) {
    for (std::size_t i = 0; i < parts_count; ++i) {
      for (std::size_t j = 0; j < parts[i].count; ++j) {
        rows_[parts[i].token + j] = value_row(a.kv, parts[i].slot + j, a.head_dim);
      }
    }
  }
  /// Sixteen dimensions of the tokens `token` and `token` + 1.
  [[nodiscard]] bf16x32 pair(std::size_t token, std::size_t chunk) const {
    return narrow_pairs(one(token, chunk), one(token + 1, chunk));
  }

 private:
  [[nodiscard]] f32x16 one(std::size_t token, std::size_t chunk) const {
    if (token < from_ || token >= to_) return zero();
    return Format::template weight<0>(Format::open(rows_[token], chunk));
  }
  const std::byte* rows_[attention_block_tokens];
  std::size_t from_, to_;
};

/// One bit for each pair of a block's tokens.
using token_pairs = std::uint64_t;
static_assert(attention_block_tokens / 2 <= 64);

/// Expands values to tiles, with zeros for infinities and NaN: a row that does not see their token would multiply them
/// by its weight of zero. Returns the pairs of tokens that have such values.
template<class Format>
token_pairs write_values(const tile_attention& w, const block_values<Format>& values, std::size_t count) {
  const __m512i infinity = _mm512_set1_epi16(0x7f80);
  token_pairs no_numbers = 0;
  for (std::size_t token = 0; token < round_up(count, tile_columns); token += 2) {
    __mmask32 found = 0;
    for (std::size_t chunk = 0; chunk < w.width / 16; ++chunk) {
      std::uint16_t* tile = w.values + (chunk * block_tiles + token / tile_columns) * tile_numbers;
      const __m512i pair = values.pair(token, chunk).v;
      const __mmask32 finite = _mm512_cmpneq_epi16_mask(_mm512_and_si512(pair, infinity), infinity);
      store(tile + token % tile_columns / 2 * 32, bf16x32{_mm512_maskz_mov_epi16(finite, pair)});
      found |= ~finite;
    }
    if (found != 0) no_numbers |= token_pairs{1} << token / 2;
  }
  return no_numbers;
}

/// Adds the infinities and NaNs of these tokens to the sums of the rows that see them; weights are never zero there.
template<class Format>
void add_no_numbers(const tile_attention& w, const block_values<Format>& values, token_pairs pairs, std::size_t first,
                    std::size_t count) {
  for (; pairs != 0; pairs &= pairs - 1) {
    const std::size_t token = 2 * static_cast<std::size_t>(std::countr_zero(pairs));
    for (std::size_t chunk = 0; chunk < w.width / 16; ++chunk) {
      const __m512i pair = values.pair(token, chunk).v;
      const __m512i of_token[2] = {_mm512_slli_epi32(pair, 16),
                                   _mm512_and_si512(pair, _mm512_set1_epi32(static_cast<int>(0xffff0000)))};
      for (std::size_t v = 0; v < w.vectors; ++v) {
        const seen_tokens seen = seen_in_block(w.a, v / w.a.group, first, count);
        float* sums = w.sums + v * w.width + chunk * 16;
        for (std::size_t i = 0; i < 2; ++i) {
          if (token + i < seen.from || token + i >= seen.to) continue;
          const __m512 x = _mm512_castsi512_ps(of_token[i]);
          const __mmask16 no_number = _mm512_fpclass_ps_mask(x, 0x99);  // quiet or signalling NaN, either infinity
          const __m512 before = _mm512_loadu_ps(sums);
          _mm512_storeu_ps(sums, _mm512_mask_add_ps(before, no_number, before, x));
        }
      }
    }
  }
}

void add_values_by_tiles(const tile_attention& w, std::size_t tiles, bool is_first_block) {
  const std::size_t chunks = w.width / 16;
  const std::size_t widest = w.padded == 16 ? 4 : 2;
  for (std::size_t chunk = 0; chunk < chunks;) {
    const std::size_t together = std::bit_floor(std::min(widest, chunks - chunk));
    multiply_rows({.x = w.weights,
                   .x_step = block_tiles * tile_numbers,
                   .panels = nullptr,
                   .expand = nullptr,
                   .first_tile = 0,
                   .depth = tiles,
                   .columns = 0,
                   .w = w.values + chunk * block_tiles * tile_numbers,
                   .w_tiles = block_tiles,
                   .w_mask = every_tile,
                   .y = w.sums + chunk * 16,
                   .y_stride = w.width,
                   .rows = 0,
                   .lanes = together * 16,
                   .first = is_first_block,
                   .bias = nullptr},
                  w.padded, together);
    chunk += together;
  }
}

void attend_block_by_tiles(const tile_attention& w, std::size_t first, std::size_t count, std::size_t& tile) {
  const attention_args& a = w.a;
  const seen_tokens seen_by_first = seen_in_block(a, 0, first, count);
  block_part parts[attention_block_tokens];
  const std::size_t parts_count = parts_of_block(a, first, seen_by_first.from, count, tile, parts);
  tokens_ahead ahead(a, tile);
  score_by_tiles(w, parts, parts_count, ahead);
  ahead.next(attention_block_tokens);
  const std::size_t tiles = (count + tile_columns - 1) / tile_columns;
  for (std::size_t v = 0; v < w.vectors; ++v) {
    const seen_tokens seen = seen_in_block(a, v / a.group, first, count);
    // So far all weights of this vector were zeros.
    if (seen.starts && !seen_by_first.starts) std::fill_n(w.sums + v * w.width, w.width, 0.0F);
    weigh_tile_scores(w, v, seen, tiles);
  }
  with_element(a.kv.type, [&]<class Format>() {
    const block_values<Format> values(a, parts, parts_count, count);
    const token_pairs no_numbers = write_values(w, values, count);
    add_values_by_tiles(w, tiles, seen_by_first.starts);
    if (no_numbers != 0) add_no_numbers(w, values, no_numbers, first, count);
  });
}

void rotate_queries(const tile_attention& w, float* rotated) {
  const attention_args& a = w.a;
  for (std::size_t offset = 0; offset < a.offset_count; ++offset) {
    for (std::size_t v = 0; v < w.padded; ++v) {
      const std::size_t row = v / a.group;
      const std::size_t place = (offset * w.padded + v / 16 * 16) * w.key_tiles + v % 16;
      if (v < w.vectors) {
        rotate(a.pairs, a.q + row * a.q_stride + v % a.group * a.head_dim, a.angles[offset * a.angles_stride + row],
               a.rotary_dim, a.head_dim, rotated);
      }
      narrow_row(rotated, v < w.vectors ? a.head_dim : 0, w.key_tiles, w.queries + place * tile_columns);
    }
  }
}

inline auto tile_shrink_of(const attention_args& a) {
  return [scale = tile_weight_scale(a)](float difference) {
    return f32x16{power_of_two(_mm512_set1_ps(difference * scale))};
  };
}

/// Writes the output of query vector v, from the sums at index `at`; -0 becomes +0.
inline void write_tile_output(const attention_args& a, std::size_t v, const split_sums& s, std::size_t at) {
  const f32x16 scale = output_scale(a, v, s, at, tile_shrink_of(a));
  float* out = a.out + v / a.group * a.out_stride + v % a.group * a.head_dim;
  for_chunks(a.head_dim, [&](std::size_t d, std::size_t lanes) {
    store_some(out + d, fma(load_some(s.sums + at * s.width + d, lanes), scale, zero()), lanes);
  });
}

void attention_by_tiles(const attention_args& a) {
  if (holds_integers(a.kv.type)) return best_avx512_table().attention(a);
  if (a.rows == 0) return;
  const std::size_t vectors = a.rows * a.group;
  const std::size_t padded = round_up(vectors, 16);
  const std::size_t width = round_up(a.head_dim, 16);
  const std::size_t key_tiles = (a.head_dim + tile_columns - 1) / tile_columns;
  float* free = a.scratch;
  const auto take = [&](std::size_t floats) { return std::exchange(free, free + round_up(floats, 16)); };
  const auto take_tiles = [&](std::size_t tiles) {
    return reinterpret_cast<std::uint16_t*>(take(tiles * tile_numbers / 2));
  };
  float* rotated = take(a.head_dim);
  const tile_attention w{.a = a,
                         .vectors = vectors,
                         .padded = padded,
                         .width = width,
                         .key_tiles = key_tiles,
                         .queries = take_tiles(a.offset_count * padded / 16 * key_tiles),
                         .scores = take(padded * attention_score_stride),
                         .odd_scores = take(padded * tile_tokens),
                         .tops = take(padded),
                         .totals = take(padded * 16),
                         .weights = take_tiles(padded / 16 * block_tiles),
                         .sums = take(padded * width),
                         .keys = take_tiles(tile_panels_max * key_tiles),
                         .values = take_tiles(width / 16 * block_tiles)};
  const split_sums one{w.tops, w.totals, w.sums, width};
  float* joined_tops = take(vectors);
  float* joined_totals = take(vectors * 16);
  const split_sums joined{joined_tops, joined_totals, take(vectors * width), width};
  rotate_queries(w, rotated);
  // Tile rows beyond the last vector may contain any numbers; ordinary ones keep the emulation fast.
  for (std::size_t v = vectors; v < padded; ++v) weigh_tile_scores(w, v, {0, 0, true}, block_tiles);

  const tile_session session;
  const auto attend = [&](std::size_t begin, std::size_t end) {
    const std::size_t from = std::max(begin, first_seen(a, 0));
    std::size_t tile = tile_of_token(a, from);
    for (std::size_t first = block_of(from); first < end; first += attention_block_tokens) {
      attend_block_by_tiles(w, first, std::min(attention_block_tokens, end - first), tile);
    }
  };
  const split_sums* all = attend_splits(a, one, joined, attend, tile_shrink_of(a));
  if (all == nullptr) return;
  for (std::size_t v = 0; v < vectors; ++v) write_tile_output(a, v, *all, v);
}

void join_attention_by_tiles(const attention_args& a) {
  if (holds_integers(a.kv.type)) return best_avx512_table().join_attention(a);
  join_records(a, tile_shrink_of(a),
               [&](std::size_t v, const split_sums& s, std::size_t at) { write_tile_output(a, v, s, at); });
}
