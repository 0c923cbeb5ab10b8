// The tile verbs on AMX: eight tile registers of 16 rows x 64 bytes, named by number. Needs vec_avx512.inl.hpp. Written
// as assembly, because the compiler's intrinsics accept only literal numbers and do not order tile loads after the
// ordinary stores of their data.

struct tile_config {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(tile_config) == 64);

/// This thread may use tiles while a tile_session exists.
struct tile_session {
  tile_session() {
    alignas(64) const tile_config config;
    asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  }
  ~tile_session() { asm volatile("tilerelease" : : : "memory"); }
  tile_session(const tile_session&) = delete;
  tile_session& operator=(const tile_session&) = delete;
};

template<int Tile>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(Tile));
}
/// A session for groups of `Group` columns of bytes: sums in tiles 0 and 1, rows of x in 2 and 3, weights in 4 and 5.
template<int Group>
struct byte_tile_session {
  byte_tile_session() {
    alignas(64) tile_config config;
    for (const int x : {2, 3}) config.row_bytes[x] = Group;
    for (const int w : {4, 5}) config.rows[w] = Group / 4;
    asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  }
  ~byte_tile_session() { asm volatile("tilerelease" : : : "memory"); }
  byte_tile_session(const byte_tile_session&) = delete;
  byte_tile_session& operator=(const byte_tile_session&) = delete;
};

/// Rows are stride_bytes apart.
template<int Tile>
inline void tile_load(const void* from, std::size_t stride_bytes) {
  asm volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(Tile), "r"(from), "r"(stride_bytes) : "memory");
}
template<int Tile>
inline void tile_store(void* to, std::size_t stride_bytes) {
  asm volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(Tile), "r"(to), "r"(stride_bytes) : "memory");
}
/// C[m][n] += sum over 16 pairs p of A[m][p].even * B[p][n].even, plus the same for the odd ones (bf16 to f32).
template<int C, int A, int B>
inline void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

/// C[m][n] += sum over the group's columns k of A[m][k] * B[k / 4][n].byte[k % 4], signed bytes.
template<int C, int A, int B>
inline void tile_multiply_bytes() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
}

/// Thirty-two bf16 numbers, rounded to nearest even.
struct bf16x32 {
  __m512i v;
};
inline void store(std::uint16_t* p, bf16x32 a) { _mm512_storeu_si512(p, a.v); }
/// low[0..15], high[0..15]
inline bf16x32 narrow_both(f32x16 low, f32x16 high) {
  return {__builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(high.v, low.v))};
}
/// even[0], odd[0], even[1], odd[1], ...
inline bf16x32 narrow_pairs(f32x16 even, f32x16 odd) {
  const __m512i zip = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                       5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return {_mm512_permutexvar_epi16(zip, narrow_both(even, odd).v)};
}
