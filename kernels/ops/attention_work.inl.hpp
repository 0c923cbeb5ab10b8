// Shared by all attention with vectors: a few rows against a page table, in blocks of tokens with a running maximum
// (Milakov & Gimelshein 2018; Dao et al. 2022).
//
// Order of every sum: blocks end at token indices that are multiples of attention_block_tokens, KV splits at multiples
// of kv_split_tokens (attention_kv_splits.inl.hpp); between blocks, sums are scaled to the new maximum. Within a block,
// lane t % 16 sums the weights of the tokens t. A row's bits do not depend on where the tokens are stored, which rows
// share the call, or how many tokens other rows see.

/// Data shared by the steps of one call.
struct attention_work {
  const attention_args& a;
  std::size_t vectors;  // query vectors: row * group + head in group
  std::size_t width;    // head_dim rounded up to whole chunks
  float* scores;        // [vectors][attention_score_stride]
  float* odd_scores;    // [vectors][16], for a partial tile
  split_sums one;       // sums of the current split
  split_sums joined;
};

/// Allocates a call's scratch.
class scratch_floats {
 public:
  explicit scratch_floats(const attention_args& a) : free_(a.scratch) {}
  float* take(std::size_t floats) { return std::exchange(free_, free_ + round_up(floats, 16)); }

 private:
  float* free_;
};

inline attention_work start_attention(const attention_args& a, scratch_floats& scratch) {
  const std::size_t vectors = a.rows * a.group;
  const std::size_t width = round_up(a.head_dim, 16);
  const auto take_sums = [&] {
    float* tops = scratch.take(vectors);
    float* totals = scratch.take(vectors * 16);
    return split_sums{tops, totals, scratch.take(vectors * width), width};
  };
  attention_work w{a, vectors, width, nullptr, nullptr, take_sums(), take_sums()};
  w.scores = scratch.take(vectors * attention_score_stride);
  w.odd_scores = scratch.take(vectors * tile_tokens);
  return w;
}

/// Query vector v, rotated for the keys of an offset. out: [head_dim]
inline void rotate_query(const attention_args& a, std::size_t offset, std::size_t v, float* out) {
  const std::size_t row = v / a.group;
  rotate(a.pairs, a.q + row * a.q_stride + v % a.group * a.head_dim, a.angles[offset * a.angles_stride + row],
         a.rotary_dim, a.head_dim, out);
}

/// The highest of n scores, in lanes; for whole chunks.
template<std::size_t Chunks>
inline f32x16 highest_of(const float* scores) {
  f32x16 top = broadcast(scores[0]);
#pragma GCC unroll 8
  for (std::size_t c = 0; c < Chunks; ++c) top = max(top, load(scores + c * 16));
  return top;
}

/// Converts vector v's scores of the block's tokens that it sees, at least one, to weights, and scales its sums to the
/// new maximum. The other weights of the first chunk are zeros. The weights of a whole block are first offered to
/// take(weights): if it returns true, nothing is written. Returns whether it did.
template<class Take>
bool weigh_scores(const attention_work& w, std::size_t v, const seen_tokens& seen, Take take) {
  float* all_scores = w.scores + v * attention_score_stride;
  const std::size_t begin = seen.from / 16 * 16, unseen = seen.from - begin, n = seen.to - begin;
  float* scores = all_scores + begin;
  std::fill_n(scores, unseen, scores[unseen]);  // so that they are not the highest
  if (w.a.soft_cap > 0) cap_all(scores, n, w.a.scale / w.a.soft_cap, w.a.soft_cap);
  const f32x16 scale = broadcast(weight_scale(w.a));
  constexpr std::size_t whole_chunks = attention_block_tokens / 16;
  const bool is_whole = n == attention_block_tokens && unseen == 0;
  f32x16 top = is_whole ? highest_of<whole_chunks>(scores) : broadcast(scores[0]);
  for_chunks(is_whole ? 0 : n, [&](std::size_t i, std::size_t lanes) {
    if (lanes == 16) {
      top = max(top, load(scores + i));
    } else {
      for (std::size_t j = 0; j < lanes; ++j) top = max(top, broadcast(scores[i + j]));
    }
  });
  const bool is_first_block = seen.starts;
  const float before = w.one.tops[v];
  w.one.tops[v] = is_first_block ? largest(top) : largest(max(top, broadcast(before)));
  const f32x16 highest = broadcast(w.one.tops[v]);
  float* sums = w.one.sums + v * w.width;
  f32x16 total = zero();
  if (is_first_block) {
    std::fill_n(sums, w.width, 0.0F);
  } else if (w.one.tops[v] != before) {
    const f32x16 shrink = exponential(mul(sub(broadcast(before), highest), scale));
    total = mul(load(w.one.totals + v * 16), shrink);
    for (std::size_t d = 0; d < w.width; d += 16) store(sums + d, mul(load(sums + d), shrink));
  } else {
    total = load(w.one.totals + v * 16);
  }
  if (is_whole) {
    // Computes all chunks at once, because each is a long chain of operations.
    f32x16 e[whole_chunks];
#pragma GCC unroll 8
    for (std::size_t c = 0; c < whole_chunks; ++c) {
      e[c] = exponential(mul(sub(load(scores + c * 16), highest), scale));
    }
#pragma GCC unroll 8
    for (std::size_t c = 0; c < whole_chunks; ++c) total = add(total, e[c]);
    store(w.one.totals + v * 16, total);
    if (take(e)) return true;
#pragma GCC unroll 8
    for (std::size_t c = 0; c < whole_chunks; ++c) store(scores + c * 16, e[c]);
    return false;
  }
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    f32x16 e = exponential(mul(sub(load_some(scores + i, lanes), highest), scale));
    store_some(scores + i, e, lanes);
    if (i < unseen) {
      std::fill_n(scores, unseen, 0.0F);
      e = load_some(scores, lanes);
    }
    total = add(total, lanes == 16 ? e : load_n(scores + i, lanes));
  });
  store(w.one.totals + v * 16, total);
  return false;
}

inline auto shrink_of(const attention_args& a) {
  return [scale = weight_scale(a)](float difference) { return exponential(broadcast(difference * scale)); };
}

/// Writes the output of query vector v, from the sums at index `at`.
inline void write_output(const attention_args& a, std::size_t v, const split_sums& s, std::size_t at) {
  const f32x16 scale = output_scale(a, v, s, at, shrink_of(a));
  float* out = a.out + v / a.group * a.out_stride + v % a.group * a.head_dim;
  for_chunks(a.head_dim, [&](std::size_t d, std::size_t lanes) {
    store_some(out + d, mul(load_some(s.sums + at * s.width + d, lanes), scale), lanes);
  });
}

/// Computes all splits with attend_block(first, count, tile) and writes the outputs, or saves the splits' sums.
template<class AttendBlock>
inline void attend_all(const attention_work& w, AttendBlock attend_block) {
  const attention_args& a = w.a;
  const auto attend = [&](std::size_t begin, std::size_t end) {
    const std::size_t from = std::max(begin, first_seen(a, 0));
    std::size_t tile = tile_of_token(a, from);
    for (std::size_t first = block_of(from); first < end; first += attention_block_tokens) {
      attend_block(first, std::min(attention_block_tokens, end - first), tile);
    }
  };
  const split_sums* all = attend_splits(a, w.one, w.joined, attend, shrink_of(a));
  if (all == nullptr) return;
  for (std::size_t v = 0; v < w.vectors; ++v) write_output(a, v, *all, v);
}
