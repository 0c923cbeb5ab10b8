// Split-KV attention (Flash-Decoding): the context is cut into splits of kv_split_tokens, each split has its own sums,
// and these are always joined in order. So the splits of one row can be computed on several cores, and the row's bits
// do not depend on which. Splits and blocks are cut at fixed indices of the table, even if a row sees only a window of
// it; a split that ends before a row's window is not part of the row's sums.

/// Sums over the tokens of one split, or of several joined ones, by query vector.
struct split_sums {
  float* tops;    // [vectors] highest score
  float* totals;  // [vectors][16]: sums of the weights, relative to the highest score
  float* sums;    // [vectors][width]: sums of weighted values
  std::size_t width;
};

/// The layout of a split's sums when they are stored between two calls.
inline constexpr std::size_t record_head = 32;  // the highest score, and the totals from 16 on
inline float* split_record(const attention_args& a, std::size_t split, std::size_t v) {
  return a.records + (split * a.rows * a.group + v) * attention_record_floats(a.head_dim);
}

inline void save_split(const attention_args& a, std::size_t split, const split_sums& s, std::size_t v) {
  float* to = split_record(a, split, v);
  to[0] = s.tops[v];
  std::copy_n(s.totals + v * 16, 16, to + 16);
  std::copy_n(s.sums + v * s.width, s.width, to + record_head);
}

/// shrink(difference): exp(difference * scale), the weight of a score at `difference` <= 0 from the highest.
template<class Shrink>
inline void join_split(const split_sums& into, std::size_t v, float top, const float* totals, const float* sums,
                       Shrink shrink) {
  const float highest = std::max(into.tops[v], top);
  const f32x16 ours = shrink(into.tops[v] - highest);
  const f32x16 theirs = shrink(top - highest);
  into.tops[v] = highest;
  const auto join = [&](float* a, const float* b) { store(a, add(mul(load(a), ours), mul(load(b), theirs))); };
  join(into.totals + v * 16, totals);
  for (std::size_t d = 0; d < into.width; d += 16) join(into.sums + v * into.width + d, sums + d);
}

/// The factor of a score in the exponent: capped scores are already scaled.
inline float weight_scale(const attention_args& a) { return a.soft_cap > 0 ? 1 : a.scale; }

/// The factor of a query vector's sums: one over its weights. A sink's weight counts, like a last split of one token
/// whose value is zero.
template<class Shrink>
inline f32x16 output_scale(const attention_args& a, std::size_t v, const split_sums& s, std::size_t at, Shrink shrink) {
  const float total = sum(load(s.totals + at * 16));
  if (a.sinks == nullptr) return broadcast(1.0F / total);
  const float sink = a.sinks[v % a.group] / weight_scale(a);
  const float highest = std::max(s.tops[at], sink);
  const f32x16 ours = shrink(s.tops[at] - highest);
  return div(ours, add(mul(broadcast(total), ours), shrink(sink - highest)));
}

/// Computes splits with attend(first, end), which leaves their sums in `one`, and saves or joins them. Returns the sums
/// of all tokens, or nullptr if they were saved.
template<class Attend, class Shrink>
inline const split_sums* attend_splits(const attention_args& a, const split_sums& one, const split_sums& joined,
                                       Attend attend, Shrink shrink) {
  const std::size_t vectors = a.rows * a.group;
  const std::size_t tokens = a.visible + a.rows - 1;
  const std::size_t begin = std::max(a.split_begin, first_seen(a, 0) / kv_split_tokens);
  for (std::size_t split = begin; split < a.split_end; ++split) {
    const std::size_t first = split * kv_split_tokens;
    if (first >= tokens) break;
    const std::size_t end = std::min(tokens, first + kv_split_tokens);
    attend(first, end);
    if (a.records == nullptr && split == begin && end == tokens) return &one;
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t row = v / a.group;
      if (a.visible + row <= first || first_seen(a, row) >= end) continue;  // the row sees nothing there
      if (a.records != nullptr) {
        save_split(a, split, one, v);
      } else if (split == first_seen(a, row) / kv_split_tokens) {
        joined.tops[v] = one.tops[v];
        std::copy_n(one.totals + v * 16, 16, joined.totals + v * 16);
        std::copy_n(one.sums + v * one.width, one.width, joined.sums + v * one.width);
      } else {
        join_split(joined, v, one.tops[v], one.totals + v * 16, one.sums + v * one.width, shrink);
      }
    }
  }
  return a.records == nullptr ? &joined : nullptr;
}

/// Joins the saved splits of every query vector v and calls write(v, sums, 0). Overwrites the record of the first split
/// that the row sees with the sums.
template<class Shrink, class Write>
inline void join_records(const attention_args& a, Shrink shrink, Write write) {
  const std::size_t width = attention_record_floats(a.head_dim) - record_head;
  for (std::size_t v = 0; v < a.rows * a.group; ++v) {
    const std::size_t first = first_seen(a, v / a.group) / kv_split_tokens;
    float* all = split_record(a, first, v);
    const split_sums own{all, all + 16, all + record_head, width};
    for (std::size_t split = first + 1; split * kv_split_tokens < a.visible + v / a.group; ++split) {
      const float* one = split_record(a, split, v);
      join_split(own, 0, one[0], one + 16, one + record_head, shrink);
    }
    write(v, own, 0);
  }
}

/// The tile that contains a token.
inline std::size_t tile_of_token(const attention_args& a, std::size_t token) {
  const auto* next = std::upper_bound(a.tiles, a.tiles + a.tile_count, token,
                                      [](std::size_t t, const attention_tile& tile) { return t < tile.first_token; });
  return static_cast<std::size_t>(next - a.tiles) - 1;
}
