// RMS norm, SiLU gate and similar functions: one value or one row at a time.

void rms_norm(const float* x, const float* weight, float epsilon, std::size_t n, float* out) {
  f32x16 squares = zero();
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 a = load_some(x + i, lanes);
    squares = fma(a, a, squares);
  });
  const float mean = sum(squares) / static_cast<float>(n);
  const f32x16 scale = broadcast(1.0F / std::sqrt(mean + epsilon));
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    store_some(out + i, mul(mul(load_some(x + i, lanes), scale), load_some(weight + i, lanes)), lanes);
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, float epsilon, std::size_t n, float* out) {
  f32x16 total = zero();
  for_chunks(n, [&](std::size_t i, std::size_t lanes) { total = add(total, load_some(x + i, lanes)); });
  const f32x16 mean = broadcast(sum(total) / static_cast<float>(n));
  f32x16 squares = zero();
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    f32x16 d = sub(load_some(x + i, lanes), mean);
    if (lanes < 16) {  // lanes after the end do not count
      float some[16] = {};
      store_n(some, d, lanes);
      d = load(some);
    }
    squares = fma(d, d, squares);
  });
  const f32x16 scale = broadcast(1.0F / std::sqrt(sum(squares) / static_cast<float>(n) + epsilon));
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 normed = mul(sub(load_some(x + i, lanes), mean), scale);
    store_some(out + i, fma(normed, load_some(weight + i, lanes), load_some(bias + i, lanes)), lanes);
  });
}

void add_scaled(float* x, float scale, const float* y, std::size_t n) {
  const f32x16 s = broadcast(scale);
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    store_some(x + i, fma(s, load_some(y + i, lanes), load_some(x + i, lanes)), lanes);
  });
}

void softmax(float* x, std::size_t n) {
  float most = x[0];
  for (std::size_t i = 1; i < n; ++i) most = x[i] > most ? x[i] : most;
  f32x16 total = zero();
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    store_some(x + i, exponential(sub(load_some(x + i, lanes), broadcast(most))), lanes);
    total = add(total, load_some(x + i, lanes));  // lanes after the end are zero
  });
  const f32x16 all = broadcast(sum(total));
  for_chunks(n, [&](std::size_t i, std::size_t lanes) { store_some(x + i, div(load_some(x + i, lanes), all), lanes); });
}

void silu_multiply(float* gate, const float* up, std::size_t n) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 g = load_some(gate + i, lanes);
    const f32x16 silu = div(g, add(broadcast(1.0F), exponential(sub(zero(), g))));
    store_some(gate + i, mul(silu, load_some(up + i, lanes)), lanes);
  });
}

void sigmoid_multiply(const float* gate, float* x, std::size_t n) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 g = load_some(gate + i, lanes);
    store_some(x + i, div(load_some(x + i, lanes), add(broadcast(1.0F), exponential(sub(zero(), g)))), lanes);
  });
}

/// x / (1 + e^(-2u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), which is x / 2 (1 + tanh u).
inline f32x16 gelu(f32x16 x) {
  const f32x16 twice_u = mul(x, fma(mul(x, x), broadcast(0.0713548163F), broadcast(1.59576912F)));
  return div(x, add(broadcast(1.0F), exponential(sub(zero(), twice_u))));
}

void gelu_multiply(float* gate, const float* up, std::size_t n) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 g = gelu(load_some(gate + i, lanes));
    store_some(gate + i, up == nullptr ? g : mul(g, load_some(up + i, lanes)), lanes);
  });
}

void clamped_swiglu(float* gate, const float* up, std::size_t n) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    const f32x16 g = min(broadcast(7.0F), load_some(gate + i, lanes));
    const f32x16 u = min(broadcast(7.0F), max(broadcast(-7.0F), load_some(up + i, lanes)));
    const f32x16 swish = div(g, add(broadcast(1.0F), exponential(mul(g, broadcast(-1.702F)))));
    store_some(gate + i, mul(swish, add(u, broadcast(1.0F))), lanes);
  });
}

void soft_cap(float* x, float cap, std::size_t n) { cap_all(x, n, 1 / cap, cap); }

template<class Store, class T>
inline void narrow_to(const float* x, std::size_t n, T* out, Store store_lanes) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    T rounded[16];
    store_lanes(rounded, load_some(x + i, lanes));
    for (std::size_t j = 0; j < lanes; ++j) out[i + j] = rounded[j];
  });
}

void narrow(element_type type, const float* x, std::size_t n, void* out) {
  auto* halves = static_cast<std::uint16_t*>(out);
  switch (type) {
    case element_type::f32:
      std::memcpy(out, x, n * sizeof(float));
      return;
    case element_type::f16:
      narrow_to(x, n, halves, [](std::uint16_t* p, f32x16 a) { store_f16(p, within_f16(a)); });
      return;
    case element_type::bf16:
      narrow_to(x, n, halves, [](std::uint16_t* p, f32x16 a) { store_bf16(p, a); });
      return;
    case element_type::q8_0:
    case element_type::i16:
      return;
  }
}

template<class Load>
inline void widen_from(const std::uint16_t* x, std::size_t n, float* out, Load load_lanes) {
  for_chunks(n, [&](std::size_t i, std::size_t lanes) {
    std::uint16_t halves[16] = {};
    for (std::size_t j = 0; j < lanes; ++j) halves[j] = x[i + j];
    store_some(out + i, load_lanes(halves), lanes);
  });
}

void widen(element_type type, const void* x, std::size_t n, float* out) {
  const auto* halves = static_cast<const std::uint16_t*>(x);
  switch (type) {
    case element_type::f32:
      std::memcpy(out, x, n * sizeof(float));
      return;
    case element_type::f16:
      widen_from(halves, n, out, [](const std::uint16_t* p) { return load_f16(p); });
      return;
    case element_type::bf16:
      widen_from(halves, n, out, [](const std::uint16_t* p) { return load_bf16(p); });
      return;
    case element_type::q8_0:
    case element_type::i16:
      return;
  }
}

/// Works segment by segment; only those with a new best are searched for it.
row_best best_of_row(const float* x, std::size_t n) {
  constexpr std::size_t stretch = 1024;
  row_best best;
  for (std::size_t begin = 0; begin < n; begin += stretch) {
    const std::size_t end = std::min(n, begin + stretch);
    f32x16 tops[4];
    for (f32x16& top : tops) top = broadcast(best.value);
    std::size_t i = begin;
    for (; i + 64 <= end; i += 64) {
#pragma GCC unroll 4
      for (std::size_t c = 0; c < 4; ++c)
        tops[c] = max(load(x + i + 16 * c), tops[c]);  // the second operand wins over NaN
    }
    float top = largest(max(max(tops[0], tops[1]), max(tops[2], tops[3])));
    for (; i < end; ++i) top = x[i] > top ? x[i] : top;
    if (!(top > best.value)) continue;
    std::size_t at = begin;
    while (x[at] != top) ++at;
    best = {top, static_cast<std::uint32_t>(at)};
  }
  return best;
}
