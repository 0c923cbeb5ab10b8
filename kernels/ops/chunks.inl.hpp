// Ranges of any length, sixteen lanes at a time.

/// Calls body(i, lanes) for chunks of up to 16 of [0, n).
template<class Body>
inline void for_chunks(std::size_t n, Body body) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, std::size_t{16});
  if (i < n) body(i, n - i);
}
inline f32x16 load_some(const float* p, std::size_t lanes) { return lanes == 16 ? load(p) : load_n(p, lanes); }
inline void store_some(float* p, f32x16 a, std::size_t lanes) {
  if (lanes == 16) {
    store(p, a);
  } else {
    store_n(p, a, lanes);
  }
}
