// Split-KV attention (Flash-Decoding): the context is cut into splits of kv_split_tokens, each split has sums of its
// own, and these are joined in order, always. So the splits of one row can be computed on several cores, and the row's
// bits do not depend on which.

/// Sums over the tokens of one split, or of several joined, by query vector.
struct split_sums {
  float* tops;    // [vectors] highest score
  float* totals;  // [vectors][16] of the weights, which are relative to the highest
  float* sums;    // [vectors][width] of weighted values
  std::size_t width;
};

/// A split's sums as they are stored between two calls.
inline constexpr std::size_t record_head = 32;  // the highest score, and from 16 on the totals
inline float* split_record(const attention_args& a, std::size_t split, std::size_t v) {
  return a.records + (split * a.rows * a.group + v) * attention_record_floats(a.head_dim);
}

inline void save_split(const attention_args& a, std::size_t split, const split_sums& s, std::size_t v) {
  float* to = split_record(a, split, v);
  to[0] = s.tops[v];
  std::copy_n(s.totals + v * 16, 16, to + 16);
  std::copy_n(s.sums + v * s.width, s.width, to + record_head);
}

/// shrink(difference): exp(difference * scale), the weight of a score that lies `difference` from the highest; <= 0.
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

/// Computes splits with attend(first, end), which leaves their sums in `one`, and either saves them or joins them.
/// Returns the sums of all tokens, nullptr when they were saved.
template<class Attend, class Shrink>
inline const split_sums* attend_splits(const attention_args& a, const split_sums& one, const split_sums& joined,
                                       Attend attend, Shrink shrink) {
  const std::size_t vectors = a.rows * a.group;
  const std::size_t tokens = a.visible + a.rows - 1;
  for (std::size_t split = a.split_begin; split < a.split_end; ++split) {
    const std::size_t first = split * kv_split_tokens;
    if (first >= tokens) break;
    const std::size_t end = std::min(tokens, first + kv_split_tokens);
    attend(first, end);
    if (a.records == nullptr && split == 0 && end == tokens) return &one;
    for (std::size_t v = 0; v < vectors; ++v) {
      if (a.visible + v / a.group <= first) continue;  // its row sees nothing there
      if (a.records != nullptr) {
        save_split(a, split, one, v);
      } else if (split == 0) {
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

/// Joins the saved splits of every query vector v and calls write(v, sums, 0). The first split's record is overwritten
/// with the sums.
template<class Shrink, class Write>
inline void join_records(const attention_args& a, Shrink shrink, Write write) {
  const std::size_t width = attention_record_floats(a.head_dim) - record_head;
  for (std::size_t v = 0; v < a.rows * a.group; ++v) {
    float* all = split_record(a, 0, v);
    const split_sums own{all, all + 16, all + record_head, width};
    for (std::size_t split = 1; split * kv_split_tokens < a.visible + v / a.group; ++split) {
      const float* one = split_record(a, split, v);
      join_split(own, 0, one[0], one + 16, one + record_head, shrink);
    }
    write(v, own, 0);
  }
}

/// The tile in which a token lies.
inline std::size_t tile_of_token(const attention_args& a, std::size_t token) {
  const auto* next = std::upper_bound(a.tiles, a.tiles + a.tile_count, token,
                                      [](std::size_t t, const attention_tile& tile) { return t < tile.first_token; });
  return static_cast<std::size_t>(next - a.tiles) - 1;
}
