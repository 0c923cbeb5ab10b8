// Attention over keys and values that are floats or are widened to floats. A block's keys and values are widened once
// and serve all query vectors: a key tile is a panel whose "rows" are 16 tokens; a segment of values is a panel whose
// "rows" are 16 dimensions and whose k-steps are tokens. A score is one chain over the dimensions; within a block an
// output is one chain over the tokens. (attention_work.inl.hpp has what all attention shares.)

/// A few query vectors, such as one row's, read keys and values as they are stored.
inline constexpr int few_vectors_max = std::min(8, gemm_accumulators);
constexpr std::size_t panels_beside_few(std::size_t vectors) { return 2 * vectors <= gemm_accumulators ? 2 : 1; }

/// Indexed as [rows - 1][panels - 1].
template<class Panel, int... Rows>
constexpr auto few_tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<std::array<tile_function, 2>, sizeof...(Rows)>{
      {{run_whole_tile<Panel, Rows + 1, 1>,
        run_whole_tile<Panel, Rows + 1, static_cast<int>(panels_beside_few(Rows + 1))>}...}};
}
template<class Panel>
inline constexpr auto few_tiles = few_tile_table<Panel>(std::make_integer_sequence<int, few_vectors_max>{});

inline tile_function few_tile(element_type type, std::size_t vectors, std::size_t panels) {
  switch (type) {
    case element_type::f32:
      return few_tiles<f32_panel>[vectors - 1][panels - 1];
    case element_type::f16:
      return few_tiles<f16_panel>[vectors - 1][panels - 1];
    case element_type::bf16:
      return few_tiles<bf16_panel>[vectors - 1][panels - 1];
    case element_type::q8_0:
    case element_type::i16:
      break;
  }
  return nullptr;
}

/// Runs `t` for `vectors` rows of x and y in blocks of about equal height. panels must be a power of two that
/// widest_beside(vectors) allows.
inline void run_blocks(const gemm_tile& t, std::size_t vectors, std::size_t panels) {
  const auto log2_panels = static_cast<std::size_t>(std::countr_zero(panels));
  const auto all = static_cast<std::uint32_t>(vectors);
  const std::uint32_t blocks = (all + gemm_rows_max - 1) / gemm_rows_max;
  const std::uint32_t lower = all / blocks, higher_ones = all - lower * blocks;
  for (std::uint32_t v = 0, i = 0; i < blocks; ++i) {
    const std::uint32_t height = lower + (i < higher_ones ? 1 : 0);
    gemm_tile part = t;
    part.x += v * t.x_stride;
    part.y += v * t.y_stride;
    tiles_by_size[height - 1][log2_panels](part);
    v += height;
  }
}

inline std::size_t widest_beside(std::size_t vectors) {
  return static_cast<std::size_t>(panels_beside(static_cast<int>(std::min<std::size_t>(vectors, gemm_rows_max))));
}

/// Widens `n` stored numbers to floats; n must be a multiple of 16.
inline void widen_whole(element_type type, const std::byte* from, std::size_t n, float* to) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(from);
  switch (type) {
    case element_type::f32:
      std::memcpy(to, from, n * sizeof(float));
      return;
    case element_type::f16:
      for (std::size_t i = 0; i < n; i += 16) store(to + i, load_f16(halves + i));
      return;
    case element_type::bf16:
      for (std::size_t i = 0; i < n; i += 16) store(to + i, load_bf16(halves + i));
      return;
    case element_type::q8_0:
    case element_type::i16:
      return;
  }
}

/// Attention with keys and values as floats.
struct float_attention : attention_work {
  bool few;        // few query vectors, so nothing is widened
  float* rotated;  // [offset_count][vectors][head_dim]
  float* keys;     // [8 tiles][head_dim][16]
  float* values;   // [attention_block_tokens][width]
};

/// scores[v][token] = rotated query v . key, for the parts, a few tiles at a time.
void score_parts(const float_attention& w, const block_part* parts, std::size_t count, tokens_ahead& ahead) {
  const attention_args& a = w.a;
  const std::size_t widest = w.few ? panels_beside_few(w.vectors) : widest_beside(w.vectors);
  for (std::size_t i = 0; i < count;) {
    const block_part& first = parts[i];
    std::size_t whole = 0;
    while (whole < widest && i + whole < count && parts[i + whole].count == tile_tokens &&
           parts[i + whole].offset_index == first.offset_index) {
      ++whole;
    }
    const std::size_t together = std::bit_floor(std::max<std::size_t>(whole, 1));
    const std::byte* at[8];
    for (std::size_t p = 0; p < together; ++p) {
      at[p] = key_tile(a.kv, parts[i + p].slot, a.head_dim);
      if (w.few || a.kv.type == element_type::f32) continue;
      float* floats = w.keys + p * a.head_dim * tile_tokens;
      widen_whole(a.kv.type, at[p], a.head_dim * tile_tokens, floats);
      at[p] = reinterpret_cast<const std::byte*>(floats);
    }
    gemm_tile t{.panels = at,
                .x = w.rotated + first.offset_index * w.vectors * a.head_dim,
                .x_stride = a.head_dim,
                .depth = a.head_dim,
                .step_bytes = tile_tokens * (w.few ? bytes_of(a.kv.type) : sizeof(float)),
                .y = w.scores + first.token,
                .y_stride = attention_score_stride,
                .lanes = together * tile_tokens,
                .first = true};
    if (whole == 0) {
      t.y = w.odd_scores;
      t.y_stride = tile_tokens;
    }
    if (w.few)
      few_tile(a.kv.type, w.vectors, together)(t);
    else
      run_blocks(t, w.vectors, together);
    for (std::size_t v = 0; whole == 0 && v < w.vectors; ++v) {
      const float* lanes = w.odd_scores + v * tile_tokens + first.slot % tile_tokens;
      std::copy_n(lanes, first.count, w.scores + v * attention_score_stride + first.token);
    }
    for (std::size_t p = 0; p < together; ++p) ahead.next(parts[i + p].count);
    i += together;
  }
}

/// sums[v] += weight t * value t for the block's tokens [from, to), vectors [v, v + count), from widened values.
void add_values(const float_attention& w, std::size_t from, std::size_t to, std::size_t v, std::size_t count) {
  if (from >= to) return;
  const std::size_t widest = widest_beside(count);
  for (std::size_t d = 0; d < w.width;) {
    const std::size_t panels = std::bit_floor(std::min(widest, (w.width - d) / 16));
    const std::byte* at[8];
    for (std::size_t p = 0; p < panels; ++p) {
      at[p] = reinterpret_cast<const std::byte*>(w.values + from * w.width + d + p * 16);
    }
    run_blocks({.panels = at,
                .x = w.scores + v * attention_score_stride + from,
                .x_stride = attention_score_stride,
                .depth = to - from,
                .step_bytes = w.width * sizeof(float),
                .y = w.one.sums + v * w.width + d,
                .y_stride = w.width,
                .lanes = panels * 16,
                .first = false},
               count, panels);
    d += panels * 16;
  }
}

/// Adds values for a few vectors of one row, which sees all of the parts' tokens, from the values as they are stored.
void add_stored_values(const float_attention& w, const block_part* parts, std::size_t count) {
  const attention_args& a = w.a;
  const std::size_t step_bytes = value_row_bytes(a.kv.type, a.head_dim);
  for (std::size_t i = 0; i < count;) {
    const std::size_t first = i;
    std::size_t depth = parts[i++].count;
    while (i < count && parts[i].slot == parts[first].slot + depth && parts[i].slot % kv_page_tokens != 0) {
      depth += parts[i++].count;
    }
    const std::byte* values = value_row(a.kv, parts[first].slot, a.head_dim);
    for (std::size_t d = 0; d < w.width;) {
      const std::size_t panels = std::min(panels_beside_few(w.vectors), (w.width - d) / 16);
      const std::byte* at[2] = {values + d * bytes_of(a.kv.type), values + (d + 16) * bytes_of(a.kv.type)};
      few_tile(a.kv.type, w.vectors, panels)({.panels = at,
                                              .x = w.scores + parts[first].token,
                                              .x_stride = attention_score_stride,
                                              .depth = depth,
                                              .step_bytes = step_bytes,
                                              .y = w.one.sums + d,
                                              .y_stride = w.width,
                                              .lanes = panels * 16,
                                              .first = false});
      d += panels * 16;
    }
  }
}

/// Processes the tokens [first, first + count) of the table, whose tiles begin at `tile`; advances `tile`.
void attend_block(const float_attention& w, std::size_t first, std::size_t count, std::size_t& tile) {
  const attention_args& a = w.a;
  const auto seen_by = [&](std::size_t row) { return seen_in_block(a, row, first, count); };
  block_part parts[attention_block_tokens];
  const std::size_t parts_count = parts_of_block(a, first, seen_by(0).from, count, tile, parts);
  tokens_ahead ahead(a, tile);
  score_parts(w, parts, parts_count, ahead);
  ahead.next(attention_block_tokens);
  for (std::size_t v = 0; v < w.vectors; ++v) {
    const seen_tokens seen = seen_by(v / a.group);
    if (seen.from < seen.to) weigh_scores(w, v, seen, [](const auto&) { return false; });
  }
  if (w.few && a.rows == 1) return add_stored_values(w, parts, parts_count);
  for (std::size_t i = 0; i < parts_count; ++i) {
    widen_whole(a.kv.type, value_row(a.kv, parts[i].slot, a.head_dim), parts[i].count * w.width,
                w.values + parts[i].token * w.width);
  }
  // Each row first adds its own first tokens, then all rows those that all see, then each row its own last tokens. A
  // weight of zero for the other rows instead could turn a -0 into +0.
  const auto add_own = [&](std::size_t row, std::size_t from, std::size_t to) {
    const seen_tokens seen = seen_by(row);
    add_values(w, std::max(from, seen.from), std::min(to, seen.to), row * a.group, a.group);
  };
  const std::size_t from = seen_by(a.rows - 1).from, to = std::max(from, seen_by(0).to);
  for (std::size_t row = 0; from > 0 && row < a.rows; ++row) add_own(row, 0, from);
  add_values(w, from, seen_by(0).to, 0, w.vectors);
  for (std::size_t row = 0; row < a.rows; ++row) add_own(row, to, count);
}

void attention_by_floats(const attention_args& a) {
  if (a.rows == 0) return;
  scratch_floats scratch(a);
  float_attention w{start_attention(a, scratch), a.rows * a.group <= few_vectors_max, nullptr, nullptr, nullptr};
  w.rotated = scratch.take(a.offset_count * w.vectors * a.head_dim);
  w.keys = scratch.take(8 * a.head_dim * tile_tokens);
  w.values = scratch.take(attention_block_tokens * w.width);
  for (std::size_t offset = 0; offset < a.offset_count; ++offset) {
    for (std::size_t v = 0; v < w.vectors; ++v) {
      rotate_query(a, offset, v, w.rotated + (offset * w.vectors + v) * a.head_dim);
    }
  }
  attend_all(w, [&](std::size_t first, std::size_t count, std::size_t& tile) { attend_block(w, first, count, tile); });
}

void attention(const attention_args& a) {
  holds_integers(a.kv.type) ? attention_by_integers(a) : attention_by_floats(a);
}

void join_attention(const attention_args& a) {
  join_records(a, shrink_of(a), [&](std::size_t v, const split_sums& s, std::size_t at) { write_output(a, v, s, at); });
}
