// Attention of a few rows against a page table, built from the GEMM's blocks: a key tile is a panel whose "rows" are 16
// tokens, a stretch of values is a panel whose "rows" are 16 dimensions and whose k-steps are tokens.
//
// Order of every sum: a score is one chain over the dimensions; the softmax sums lane t % 16 over the tokens t, then
// the lanes as a tree; an output is one chain over the tokens. Where the tokens lie, which rows come together and how
// many tokens others see takes no part in it.

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

template<class T>
inline void scatter_key(const T* key, std::size_t head_dim, std::byte* tile, std::size_t lane) {
  T* to = reinterpret_cast<T*>(tile) + lane;
  for (std::size_t d = 0; d < head_dim; ++d) to[d * tile_tokens] = key[d];
}

void store_kv(const kv_view& kv, std::size_t slot, std::size_t head_dim, const float* key, const float* value) {
  auto* tile = const_cast<std::byte*>(key_tile(kv, slot, head_dim));
  auto* row = const_cast<std::byte*>(value_row(kv, slot, head_dim));
  narrow(kv.type, value, head_dim, row);
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

/// Runs `t` for `vectors` rows of x and y in blocks that fit the registers. panels must be a power of two that
/// panels_beside(min(vectors, gemm_rows_max)) allows.
template<class Panel>
inline void run_blocks(gemm_tile t, std::size_t vectors, std::size_t panels) {
  const auto log2_panels = static_cast<std::size_t>(std::countr_zero(panels));
  for (std::size_t v = 0; v < vectors;) {
    const std::size_t height = std::min<std::size_t>(vectors - v, gemm_rows_max);
    tiles_of<Panel>[height - 1][log2_panels](t);
    t.x += height * t.x_stride;
    t.y += height * t.y_stride;
    v += height;
  }
}

inline std::size_t widest_beside(std::size_t vectors) {
  return static_cast<std::size_t>(panels_beside(static_cast<int>(std::min<std::size_t>(vectors, gemm_rows_max))));
}

/// What the steps of one `attention` call share.
struct attention_work {
  const attention_args& a;
  std::size_t vectors;       // query vectors: row * group + head in group
  std::size_t tokens;        // seen by the last row
  std::size_t width;         // head_dim rounded up to whole chunks
  std::size_t score_stride;  // floats between the scores of two vectors
  float* rotated;            // [offset_count][vectors][head_dim]
  float* scores;             // [vectors][score_stride]
  float* sums;               // [vectors][width]
};

/// scores[v][t] = rotated query v . key t, for every tile that the last row sees.
template<class Panel>
void score_tokens(const attention_work& w) {
  const attention_args& a = w.a;
  const std::size_t widest = widest_beside(w.vectors);
  for (std::size_t i = 0; i < a.tile_count && a.tiles[i].first_token < w.tokens;) {
    const attention_tile& first = a.tiles[i];
    const std::byte* at[8];
    std::size_t count = 0;  // whole tiles in a row make whole stores
    while (count < widest && i + count < a.tile_count && a.tiles[i + count].count == tile_tokens &&
           a.tiles[i + count].offset_index == first.offset_index && a.tiles[i + count].first_token < w.tokens) {
      at[count] = key_tile(a.kv, a.tiles[i + count].first_slot, a.head_dim);
      ++count;
    }
    gemm_tile t{.panels = at,
                .x = w.rotated + first.offset_index * w.vectors * a.head_dim,
                .x_stride = a.head_dim,
                .depth = a.head_dim,
                .step_bytes = Panel::step_bytes,
                .y = w.scores + first.first_token,
                .y_stride = w.score_stride,
                .first = true};
    if (count > 0) {
      count = std::bit_floor(count);
      t.lanes = count * tile_tokens;
      run_blocks<Panel>(t, w.vectors, count);
      i += count;
      continue;
    }
    at[0] = key_tile(a.kv, first.first_slot, a.head_dim);
    const std::size_t lane = first.first_slot % tile_tokens;
    t.lanes = tile_tokens;
    for (std::size_t v = 0; v < w.vectors; ++v) {
      float whole[tile_tokens];
      gemm_tile one = t;
      one.x += v * a.head_dim;
      one.y = whole;
      run_blocks<Panel>(one, 1, 1);
      for (std::size_t j = 0; j < first.count; ++j) t.y[v * w.score_stride + j] = whole[lane + j];
    }
    ++i;
  }
}

/// sums[v] += weight t * value t for the tokens [from, to), vectors [v, v + count).
template<class Panel>
void add_values(const attention_work& w, std::size_t from, std::size_t to, std::size_t v, std::size_t count) {
  const attention_args& a = w.a;
  const std::size_t widest = widest_beside(count);
  // The first tile that ends behind `from`.
  std::size_t i = static_cast<std::size_t>(
      std::partition_point(a.tiles, a.tiles + a.tile_count,
                           [&](const attention_tile& tile) { return tile.first_token + tile.count <= from; }) -
      a.tiles);
  for (; i < a.tile_count && a.tiles[i].first_token < to; ++i) {
    const attention_tile& tile = a.tiles[i];
    const std::size_t begin = std::max<std::size_t>(tile.first_token, from);
    const std::size_t end = std::min<std::size_t>(tile.first_token + tile.count, to);
    const std::byte* values = value_row(a.kv, tile.first_slot + (begin - tile.first_token), a.head_dim);
    for (std::size_t d = 0; d < w.width;) {
      const std::size_t panels = std::bit_floor(std::min(widest, (w.width - d) / 16));
      const std::byte* at[8];
      for (std::size_t p = 0; p < panels; ++p) at[p] = values + (d / 16 + p) * Panel::step_bytes;
      run_blocks<Panel>({.panels = at,
                         .x = w.scores + v * w.score_stride + begin,
                         .x_stride = w.score_stride,
                         .depth = end - begin,
                         .step_bytes = value_row_bytes(a.kv, a.head_dim),
                         .y = w.sums + v * w.width + d,
                         .y_stride = w.width,
                         .lanes = panels * 16,
                         .first = false},
                        count, panels);
      d += panels * 16;
    }
  }
}

template<class Panel>
void attend(const attention_args& a) {
  attention_work w{a, a.rows * a.group, a.visible + a.rows - 1, round_up(a.head_dim, 16)};
  w.score_stride = round_up(w.tokens, 16) + 16;
  w.sums = a.scratch;
  w.rotated = w.sums + w.vectors * w.width;
  w.scores = w.rotated + a.offset_count * w.vectors * w.width;

  for (std::size_t offset = 0; offset < a.offset_count; ++offset) {
    for (std::size_t v = 0; v < w.vectors; ++v) {
      const std::size_t row = v / a.group;
      rotate(a.pairs, a.q + row * a.q_stride + v % a.group * a.head_dim, a.angles[offset * a.angles_stride + row], a.rotary_dim,
             a.head_dim, w.rotated + (offset * w.vectors + v) * a.head_dim);
    }
  }
  score_tokens<Panel>(w);
  float* totals = w.rotated;  // the queries are used up
  for (std::size_t v = 0; v < w.vectors; ++v) {
    totals[v] = softmax(w.scores + v * w.score_stride, a.visible + v / a.group, a.scale);
  }
  std::fill_n(w.sums, w.vectors * w.width, 0.0F);
  // What all rows see, together; then each row its own last tokens. Giving the others a weight of zero there instead
  // could turn a -0 into +0 and would read what other rows have not written.
  add_values<Panel>(w, 0, a.visible, 0, w.vectors);
  for (std::size_t row = 1; row < a.rows; ++row) {
    add_values<Panel>(w, a.visible, a.visible + row, row * a.group, a.group);
  }
  for (std::size_t v = 0; v < w.vectors; ++v) {
    const f32x16 scale = broadcast(1.0F / totals[v]);
    float* out = a.out + v / a.group * a.out_stride + v % a.group * a.head_dim;
    for_chunks(a.head_dim, [&](std::size_t d, std::size_t lanes) {
      store_some(out + d, mul(load_some(w.sums + v * w.width + d, lanes), scale), lanes);
    });
  }
}

void attention(const attention_args& a) {
  if (a.rows == 0) return;
  switch (a.kv.type) {
    case element_type::f32:
      return attend<f32_panel>(a);
    case element_type::f16:
      return attend<f16_panel>(a);
    case element_type::bf16:
      return attend<bf16_panel>(a);
  }
}
