// The tile verbs (tiles_amx.inl.hpp) on plain AVX-512, bit for bit as Intel defines TDPBF16PS: even and odd products
// are summed separately by fused multiply-adds, then joined, then added to the previous sum; denormal numbers are
// zeros. For tests of the tile kernels on machines without AMX.

struct alignas(64) emulated_tile {
  std::uint32_t words[16][16];
};
struct tile_shape {
  std::size_t rows = 16;
  std::size_t row_bytes = 64;
};
inline tile_shape& shape_of(int number) {
  static thread_local tile_shape shapes[8];
  return shapes[number];
}
inline emulated_tile& tile_register(int number) {
  static thread_local emulated_tile tiles[8];
  return tiles[number];
}

struct tile_session {
  tile_session() = default;
  ~tile_session() {}  // not trivial, like the real one
  tile_session(const tile_session&) = delete;
  tile_session& operator=(const tile_session&) = delete;
};
template<int Group>
struct byte_tile_session {
  byte_tile_session() {
    for (const int x : {2, 3}) shape_of(x).row_bytes = Group;
    for (const int w : {4, 5}) shape_of(w).rows = Group / 4;
  }
  ~byte_tile_session() {
    for (int tile = 0; tile < 8; ++tile) shape_of(tile) = {};
  }
  byte_tile_session(const byte_tile_session&) = delete;
  byte_tile_session& operator=(const byte_tile_session&) = delete;
};

template<int Tile>
inline void tile_zero() {
  tile_register(Tile) = {};
}
template<int Tile>
inline void tile_load(const void* from, std::size_t stride_bytes) {
  const tile_shape shape = shape_of(Tile);
  for (std::size_t r = 0; r < shape.rows; ++r) {
    std::memcpy(tile_register(Tile).words[r], static_cast<const std::byte*>(from) + r * stride_bytes, shape.row_bytes);
  }
}
template<int Tile>
inline void tile_store(void* to, std::size_t stride_bytes) {
  for (std::size_t r = 0; r < 16; ++r) {
    std::memcpy(static_cast<std::byte*>(to) + r * stride_bytes, tile_register(Tile).words[r], 64);
  }
}

inline __m512 even_of(__m512i pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
inline __m512 odd_of(__m512i pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
}

// Not inlined, because its arithmetic must stay between the two changes of the rounding state.
[[gnu::noinline]] void multiply_emulated(emulated_tile& c, const emulated_tile& a, const emulated_tile& b) {
  constexpr int rows = 4;  // at a time: eight chains hide the latency
  for (int m = 0; m < 16; m += rows) {
    __m512 even[rows] = {};
    __m512 odd[rows] = {};
    for (int p = 0; p < 16; ++p) {
      const __m512i pairs = _mm512_load_si512(b.words[p]);
      for (int r = 0; r < rows; ++r) {
        const __m512i x = _mm512_set1_epi32(static_cast<int>(a.words[m + r][p]));
        even[r] = _mm512_fmadd_ps(even_of(x), even_of(pairs), even[r]);
        odd[r] = _mm512_fmadd_ps(odd_of(x), odd_of(pairs), odd[r]);
      }
    }
    for (int r = 0; r < rows; ++r) {
      const __m512 so_far = _mm512_castsi512_ps(_mm512_load_si512(c.words[m + r]));
      const __m512 sum = _mm512_add_ps(so_far, _mm512_add_ps(even[r], odd[r]));
      _mm512_store_si512(c.words[m + r], _mm512_castps_si512(sum));
    }
  }
}

template<int C, int A, int B>
inline void tile_multiply() {
  constexpr unsigned denormals_are_zero = 0x8040;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | denormals_are_zero);
  multiply_emulated(tile_register(C), tile_register(A), tile_register(B));
  _mm_setcsr(before);
}

/// As Intel defines TDPBSSD: integers, exact in any order.
template<int C, int A, int B>
inline void tile_multiply_bytes() {
  emulated_tile& c = tile_register(C);
  for (std::size_t m = 0; m < 16; ++m) {
    for (std::size_t k = 0; k < shape_of(A).row_bytes / 4; ++k) {
      const std::uint32_t x = tile_register(A).words[m][k];
      for (std::size_t n = 0; n < 16; ++n) {
        const std::uint32_t w = tile_register(B).words[k][n];
        std::int32_t sum = 0;
        for (int b = 0; b < 4; ++b) sum += static_cast<std::int8_t>(x >> 8 * b) * static_cast<std::int8_t>(w >> 8 * b);
        c.words[m][n] += static_cast<std::uint32_t>(sum);
      }
    }
  }
}

struct bf16x32 {
  __m512i v;
};
inline void store(std::uint16_t* p, bf16x32 a) { _mm512_storeu_si512(p, a.v); }
inline bf16x32 narrow_both(f32x16 low, f32x16 high) {
  alignas(64) std::uint16_t both[32];
  store_bf16(both, low);
  store_bf16(both + 16, high);
  return {_mm512_load_si512(both)};
}
inline bf16x32 narrow_pairs(f32x16 even, f32x16 odd) {
  alignas(64) std::uint16_t both[32];
  store_bf16(both, even);
  store_bf16(both + 16, odd);
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(both)));
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_load_si256(reinterpret_cast<const __m256i*>(both + 16)));
  return {_mm512_or_si512(low, _mm512_slli_epi32(high, 16))};
}
