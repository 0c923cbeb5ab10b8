// Gated DeltaNet's state and the short convolution before it. Every column of a state (a dimension of values) is one
// chain of multiply-adds in the order of keys, so the bits are the same for every vector width.

/// to = decay * from + key (outer) change, for the columns [column, column + delta_columns).
inline void update_columns(const float* from, const delta_update& u, std::size_t column, std::size_t head_dim,
                           float* to) {
  const f32x16 decay = broadcast(u.decay);
  const f32x16 change_0 = load(u.change + column), change_1 = load(u.change + column + 16);
  for (std::size_t i = 0; i < head_dim; ++i, from += delta_columns, to += delta_columns) {
    const f32x16 key = broadcast(u.key[i]);
    store(to, fma(key, change_0, mul(decay, load(from))));
    store(to + 16, fma(key, change_1, mul(decay, load(from + 16))));
  }
}

/// What a row changes and reads in these columns.
inline void read_columns(const float* state, const delta_row& r, std::size_t column, std::size_t head_dim) {
  f32x16 of_key_0 = zero(), of_key_1 = zero(), of_query_0 = zero(), of_query_1 = zero(), products = zero();
  for (std::size_t i = 0; i < head_dim; ++i, state += delta_columns) {
    const f32x16 state_0 = load(state), state_1 = load(state + 16);
    const f32x16 key = broadcast(r.key[i]), query = broadcast(r.query[i]);
    of_key_0 = fma(key, state_0, of_key_0);
    of_key_1 = fma(key, state_1, of_key_1);
    of_query_0 = fma(query, state_0, of_query_0);
    of_query_1 = fma(query, state_1, of_query_1);
  }
  for (std::size_t i = 0; i < head_dim; i += 16) products = fma(load(r.key + i), load(r.query + i), products);
  const f32x16 query_key = broadcast(sum(products)), decay = broadcast(r.decay), strength = broadcast(r.strength);
  const auto finish = [&](std::size_t at, f32x16 of_key, f32x16 of_query) {
    const f32x16 change = mul(strength, sub(load(r.value + at), mul(decay, of_key)));
    store(r.change + at, change);
    store(r.out + at, fma(query_key, change, mul(decay, of_query)));
  };
  finish(column, of_key_0, of_query_0);
  finish(column + 16, of_key_1, of_query_1);
}

void delta_rule(const delta_args& a) {
  for (std::size_t group = a.group_begin; group < a.group_end; ++group) {
    const std::size_t column = group * delta_columns;
    float* const kept = a.state + column * a.head_dim;
    const float* state = kept;
    for (std::size_t i = 0; i < a.update_count; ++i) update_columns(kept, a.updates[i], column, a.head_dim, kept);
    for (std::size_t i = 0; i < a.row_count; ++i) {
      const delta_row& r = a.rows[i];
      read_columns(state, r, column, a.head_dim);
      if (i >= a.kept_count && i + 1 == a.row_count) break;  // nothing reads what comes after it
      float* const to = i < a.kept_count ? kept : a.scratch;
      update_columns(state, {r.key, r.change, r.decay}, column, a.head_dim, to);
      state = to;
    }
  }
}

void convolve(const float* const* rows, const float* weights, std::size_t taps, std::size_t n, bool has_silu,
              float* out) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    f32x16 x = zero();
    for (std::size_t tap = 0; tap < taps; ++tap)
      x = fma(load_some(weights + tap * n + i, lanes), load_some(rows[tap] + i, lanes), x);
    if (has_silu) x = div(x, add(broadcast(1.0F), exponential(sub(zero(), x))));
    store_some(out + i, x, lanes);
  });
}
