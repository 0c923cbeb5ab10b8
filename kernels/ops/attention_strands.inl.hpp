// The context in strands of attention_strand_tokens: each is attended to by itself, and their sums are joined in order.
// So the strands of one row can be computed on many cores, and a row's bits are the same wherever they were.

/// Sums over the tokens of one strand, or of several joined, by query vector.
struct strand_sums {
  float* tops;    // [vectors] highest score
  float* totals;  // [vectors][16] of the weights, which are relative to the highest
  float* sums;    // [vectors][width] of weighted values
  std::size_t width;
};

/// A strand's sums as they travel between cores.
inline constexpr std::size_t record_head = 32;  // the highest score, and from 16 on the totals
inline float* strand_record(const attention_args& a, std::size_t strand, std::size_t v) {
  return a.records + (strand * a.rows * a.group + v) * attention_record_floats(a.head_dim);
}

inline void save_strand(const attention_args& a, std::size_t strand, const strand_sums& s, std::size_t v) {
  float* to = strand_record(a, strand, v);
  to[0] = s.tops[v];
  std::copy_n(s.totals + v * 16, 16, to + 16);
  std::copy_n(s.sums + v * s.width, s.width, to + record_head);
}

/// shrink(difference): the weight that a score gets which lies so far below the highest; difference <= 0, in score
/// units.
template<class Shrink>
inline void join_strand(const strand_sums& into, std::size_t v, float top, const float* totals, const float* sums,
                        Shrink shrink) {
  const float highest = std::max(into.tops[v], top);
  const f32x16 ours = shrink(into.tops[v] - highest);
  const f32x16 theirs = shrink(top - highest);
  into.tops[v] = highest;
  const auto join = [&](float* a, const float* b) { store(a, add(mul(load(a), ours), mul(load(b), theirs))); };
  join(into.totals + v * 16, totals);
  for (std::size_t d = 0; d < into.width; d += 16) join(into.sums + v * into.width + d, sums + d);
}

/// Computes strands with attend(first, end), which leaves their sums in `one`, and either saves them or joins them.
/// Returns the sums of all tokens, nullptr when they were saved.
template<class Attend, class Shrink>
inline const strand_sums* attend_strands(const attention_args& a, const strand_sums& one, const strand_sums& joined,
                                         Attend attend, Shrink shrink) {
  const std::size_t vectors = a.rows * a.group;
  const std::size_t tokens = a.visible + a.rows - 1;
  for (std::size_t strand = a.strand_begin; strand < a.strand_end; ++strand) {
    const std::size_t first = strand * attention_strand_tokens;
    if (first >= tokens) break;
    const std::size_t end = std::min(tokens, first + attention_strand_tokens);
    attend(first, end);
    if (a.records == nullptr && strand == 0 && end == tokens) return &one;
    for (std::size_t v = 0; v < vectors; ++v) {
      if (a.visible + v / a.group <= first) continue;  // its row sees nothing there
      if (a.records != nullptr) {
        save_strand(a, strand, one, v);
      } else if (strand == 0) {
        joined.tops[v] = one.tops[v];
        std::copy_n(one.totals + v * 16, 16, joined.totals + v * 16);
        std::copy_n(one.sums + v * one.width, one.width, joined.sums + v * one.width);
      } else {
        join_strand(joined, v, one.tops[v], one.totals + v * 16, one.sums + v * one.width, shrink);
      }
    }
  }
  return a.records == nullptr ? &joined : nullptr;
}

/// The saved strands' outputs; write(out, d, lanes, sums, scale) as without strands. The first record serves as the
/// sums.
template<class Shrink, class Write>
inline void join_records(const attention_args& a, Shrink shrink, Write write) {
  const std::size_t width = attention_record_floats(a.head_dim) - record_head;
  for (std::size_t v = 0; v < a.rows * a.group; ++v) {
    float* all = strand_record(a, 0, v);
    const strand_sums own{all, all + 16, all + record_head, width};
    for (std::size_t strand = 1; strand * attention_strand_tokens < a.visible + v / a.group; ++strand) {
      const float* one = strand_record(a, strand, v);
      join_strand(own, 0, one[0], one + 16, one + record_head, shrink);
    }
    write(v, own, 0);
  }
}

/// The tile in which a token lies.
inline std::size_t tile_of_token(const attention_args& a, std::size_t token) {
  const auto* behind = std::upper_bound(a.tiles, a.tiles + a.tile_count, token,
                                        [](std::size_t t, const attention_tile& tile) { return t < tile.first_token; });
  return static_cast<std::size_t>(behind - a.tiles) - 1;
}
