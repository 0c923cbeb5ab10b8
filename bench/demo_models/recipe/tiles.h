// Products of bf16, on AMX tiles or with AVX512-BF16, for kernels.c. Matrices are rounded to bf16 and laid out as tiles of 1 KiB (16 rows of
// 64 bytes) just before they are multiplied; sums are fp32. The tiles of the left matrix contain `rows`: 16 rows, 32
// deep. Those of the right one contain `pairs`: 16 pairs of neighbors in depth, for 16 columns. Missing elements of a
// tile are zero.
// The instructions: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18.
#pragma once
#include <immintrin.h>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { tile_rows = 16, tile_depth = 32, tile_size = 512 };  // the size counts elements of bf16

static inline long tiles_of(long length, long size) { return (length + size - 1) / size; }
static inline long more(long a, long b) { return a > b ? a : b; }
static inline long less(long a, long b) { return a < b ? a : b; }

#ifdef __AMX_BF16__
static int tiles_lent = 0;

// Linux grants the tile registers only to processes that ask for them.
__attribute__((constructor)) static void ask_for_tiles(void) {
  const long arch_req_xcomp_perm = 0x1023, tile_data = 18;
  tiles_lent = syscall(SYS_arch_prctl, arch_req_xcomp_perm, tile_data) == 0;
}

// Each thread calls this before its products.
static void begin_tiles(void) {
  struct { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; } shape = {.palette = 1};
  for (int i = 0; i < 8; ++i) {
    shape.bytes[i] = 64;
    shape.rows[i] = tile_rows;
  }
  _tile_loadconfig(&shape);
}
#else
static const int tiles_lent = 1;  // AVX-512 multiplies the same tiles with vectors
static void begin_tiles(void) {}
#endif

static inline __mmask16 first_lanes(long count) { return count >= 16 ? 0xffff : count <= 0 ? 0 : (__mmask16)((1u << count) - 1); }
static inline __m512i to_bf16(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

// Interleaves two rows: (a0 b0 a1 b1 ...).
static inline __m512i pair_up(__m512 a, __m512 b) {
  static const uint16_t order[32] = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                     8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_loadu_si512(order), to_bf16(a, b));
}

// Transposes 16 rows of 16 32-bit elements into `to`.
static inline void turn(__m512i *r, uint16_t *to) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(to + 32 * i, _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88));
    _mm512_store_si512(to + 32 * (i + 4), _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88));
    _mm512_store_si512(to + 32 * (i + 8), _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd));
    _mm512_store_si512(to + 32 * (i + 12), _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

static inline __m512i row_of(const float *from, long present, long left) {
  if (!present) return _mm512_setzero_si512();
  return to_bf16(_mm512_maskz_loadu_ps(first_lanes(left), from), _mm512_maskz_loadu_ps(first_lanes(left - 16), from + 16));
}

static inline __m512i pair_of(const float *from, long stride, long depth_left, long columns_left) {
  const __mmask16 lanes = first_lanes(columns_left);
  return pair_up(_mm512_maskz_loadu_ps(depth_left > 0 ? lanes : 0, from), _mm512_maskz_loadu_ps(depth_left > 1 ? lanes : 0, from + stride));
}

// from: [rows, depth] -> rows, tile (row, depth) at (row * depth tiles + depth)
static void pack_rows(uint16_t *to, const float *from, long stride, long rows, long depth) {
  const long deep = tiles_of(depth, tile_depth);
  for (long i = 0; i < tiles_of(rows, tile_rows) * tile_rows; ++i)
    for (long d = 0; d < deep; ++d)
      _mm512_store_si512(to + ((i / 16 * deep + d) * 16 + i % 16) * 32, row_of(from + i * stride + d * 32, i < rows, depth - d * 32));
}

// from: [depth, rows] -> rows
static void pack_rows_turned(uint16_t *to, const float *from, long stride, long rows, long depth) {
  const long deep = tiles_of(depth, tile_depth);
  for (long d = 0; d < deep; ++d)
    for (long t = 0; t < tiles_of(rows, tile_rows); ++t) {
      __m512i pairs[16];
      for (long p = 0; p < 16; ++p)
        pairs[p] = pair_of(from + (d * 32 + 2 * p) * stride + t * 16, stride, depth - d * 32 - 2 * p, rows - t * 16);
      turn(pairs, to + (t * deep + d) * tile_size);
    }
}

// from: [depth, columns] -> pairs, tile (column, depth) at (column * depth tiles + depth)
static void pack_pairs(uint16_t *to, const float *from, long stride, long depth, long columns) {
  const long deep = tiles_of(depth, tile_depth);
  for (long p = 0; p < deep * 16; ++p)
    for (long t = 0; t < tiles_of(columns, 16); ++t)
      _mm512_store_si512(to + ((t * deep + p / 16) * 16 + p % 16) * 32,
                         pair_of(from + 2 * p * stride + t * 16, stride, depth - 2 * p, columns - t * 16));
}

// from: [columns, depth] -> pairs
static void pack_pairs_turned(uint16_t *to, const float *from, long stride, long depth, long columns) {
  const long deep = tiles_of(depth, tile_depth);
  for (long t = 0; t < tiles_of(columns, 16); ++t)
    for (long d = 0; d < deep; ++d) {
      __m512i rows[16];
      for (long i = 0; i < 16; ++i) rows[i] = row_of(from + (t * 16 + i) * stride + d * 32, t * 16 + i < columns, depth - d * 32);
      turn(rows, to + (t * deep + d) * tile_size);
    }
}

static inline void store_edge(const float *tile, float *c, long stride, long rows, long columns, int add) {
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j) c[i * stride + j] = add ? c[i * stride + j] + tile[i * 16 + j] : tile[i * 16 + j];
}

// c: [rows, columns] (+)= a * b over `deep` tiles of depth; a_deep and b_deep are the tiles of depth with which a and b
// were packed.
#ifdef __AMX_BF16__
static void multiply_tiles(const uint16_t *a, long a_deep, const uint16_t *b, long b_deep, long deep, float *c, long stride, long rows,
                           long columns, int add) {
  _Alignas(64) float edge[256];
#define BEGIN(tile, i, j)                                                            \
  if (add && (i) + 16 <= rows && (j) + 16 <= columns)                                \
    _tile_loadd(tile, c + (i) * stride + (j), stride * 4);                           \
  else                                                                               \
    _tile_zero(tile);
#define END(tile, i, j)                                                                                          \
  if ((i) + 16 <= rows && (j) + 16 <= columns) {                                                                 \
    _tile_stored(tile, c + (i) * stride + (j), stride * 4);                                                      \
  } else {                                                                                                       \
    _tile_stored(tile, edge, 64);                                                                                \
    store_edge(edge, c + (i) * stride + (j), stride, less(16, rows - (i)), less(16, columns - (j)), add);        \
  }
  for (long j = 0; j < columns; j += 32)
    for (long i = 0; i < rows; i += 32) {
      const int two_rows = i + 16 < rows, two_columns = j + 16 < columns;
      const uint16_t *a0 = a + i / 16 * a_deep * tile_size, *a1 = a0 + a_deep * tile_size;
      const uint16_t *b0 = b + j / 16 * b_deep * tile_size, *b1 = b0 + b_deep * tile_size;
      BEGIN(0, i, j)
      if (two_columns) BEGIN(1, i, j + 16)
      if (two_rows) BEGIN(2, i + 16, j)
      if (two_rows && two_columns) BEGIN(3, i + 16, j + 16)
      if (two_rows && two_columns) {
        for (long d = 0; d < deep; ++d) {
          _tile_loadd(4, a0 + d * tile_size, 64);
          _tile_loadd(6, b0 + d * tile_size, 64);
          _tile_dpbf16ps(0, 4, 6);
          _tile_loadd(7, b1 + d * tile_size, 64);
          _tile_dpbf16ps(1, 4, 7);
          _tile_loadd(5, a1 + d * tile_size, 64);
          _tile_dpbf16ps(2, 5, 6);
          _tile_dpbf16ps(3, 5, 7);
        }
      } else {
        for (long d = 0; d < deep; ++d) {
          _tile_loadd(4, a0 + d * tile_size, 64);
          _tile_loadd(6, b0 + d * tile_size, 64);
          _tile_dpbf16ps(0, 4, 6);
          if (two_columns) {
            _tile_loadd(7, b1 + d * tile_size, 64);
            _tile_dpbf16ps(1, 4, 7);
          }
          if (two_rows) {
            _tile_loadd(5, a1 + d * tile_size, 64);
            _tile_dpbf16ps(2, 5, 6);
          }
        }
      }
      END(0, i, j)
      if (two_columns) END(1, i, j + 16)
      if (two_rows) END(2, i + 16, j)
      if (two_rows && two_columns) END(3, i + 16, j + 16)
    }
#undef BEGIN
#undef END
}
#else
enum { sum_rows = 8, sum_columns = 2 };  // 16 sums of 16 columns stay in registers

static void multiply_tiles(const uint16_t *a, long a_deep, const uint16_t *b, long b_deep, long deep, float *c, long stride, long rows,
                           long columns, int add) {
  for (long j = 0; j < columns; j += 16 * sum_columns)
    for (long i = 0; i < rows; i += sum_rows) {
      const uint16_t *left = a + (i / 16 * a_deep * 16 + i % 16) * 32, *right[sum_columns];
      for (int t = 0; t < sum_columns; ++t) right[t] = b + less(j / 16 + t, tiles_of(columns, 16) - 1) * b_deep * tile_size;
      __m512 sums[sum_rows][sum_columns] = {0};
      for (long d = 0; d < deep; ++d)
        for (int p = 0; p < 16; ++p) {
          __m512bh pairs[sum_columns];
          for (int t = 0; t < sum_columns; ++t) pairs[t] = (__m512bh)_mm512_load_si512(right[t] + d * tile_size + p * 32);
#pragma GCC unroll 8
          for (int r = 0; r < sum_rows; ++r) {
            const __m512bh row = (__m512bh)_mm512_set1_epi32(*(const int32_t *)(left + d * tile_size + r * 32 + p * 2));
#pragma GCC unroll 2
            for (int t = 0; t < sum_columns; ++t) sums[r][t] = _mm512_dpbf16_ps(sums[r][t], row, pairs[t]);
          }
        }
      for (int r = 0; r < sum_rows && i + r < rows; ++r)
        for (int t = 0; t < sum_columns; ++t) {
          const __mmask16 lanes = first_lanes(columns - j - 16 * t);
          float *to = c + (i + r) * stride + j + 16 * t;
          _mm512_mask_storeu_ps(to, lanes, add ? _mm512_add_ps(sums[r][t], _mm512_maskz_loadu_ps(lanes, to)) : sums[r][t]);
        }
    }
}
#endif

// Memory that a thread keeps between calls and that only grows.
typedef struct {
  void *at;
  size_t size;
} scratch_memory;

static void *scratch(scratch_memory *memory, long elements, size_t size) {
  const size_t bytes = ((size_t)elements * size + 4095) / 4096 * 4096;
  if (memory->size < bytes) {
    free(memory->at);
    memory->at = aligned_alloc(4096, bytes);
    memory->size = bytes;
  }
  return memory->at;
}

// The contract of gemm() in kernels.c.
static void multiply(int transpose_a, int transpose_b, long m, long n, long k, const float *a, long lda, const float *b, long ldb, float *c,
                     long ldc, int add) {
  static _Thread_local scratch_memory right, left;  // the caller's `right` serves all threads of the team
  enum { depth_block = 1024, column_block = 64 };
  const long row_block = m >= 512 ? 64 : 32;
  for (long from = 0; from < k; from += depth_block) {
    const long depth = less(depth_block, k - from), deep = tiles_of(depth, tile_depth);
    uint16_t *b_tiles = scratch(&right, tiles_of(n, column_block) * column_block * deep * tile_depth, 2);
#pragma omp parallel
    {
      begin_tiles();
      uint16_t *a_tiles = scratch(&left, row_block * deep * tile_depth, 2);
#pragma omp for schedule(static)
      for (long at = 0; at < n; at += column_block) {
        const long columns = less(column_block, n - at);
        uint16_t *to = b_tiles + at * deep * tile_depth;
        if (transpose_b)
          pack_pairs_turned(to, b + at * ldb + from, ldb, depth, columns);
        else
          pack_pairs(to, b + from * ldb + at, ldb, depth, columns);
      }
#pragma omp for schedule(dynamic)
      for (long at = 0; at < m; at += row_block) {
        const long rows = less(row_block, m - at);
        if (transpose_a)
          pack_rows_turned(a_tiles, a + from * lda + at, lda, rows, depth);
        else
          pack_rows(a_tiles, a + at * lda + from, lda, rows, depth);
        multiply_tiles(a_tiles, deep, b_tiles, deep, deep, c + at * ldc, ldc, rows, n, add || from);
      }
    }
  }
}

static inline __m512 exp16(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693147181f), x);
  __m512 p = _mm512_set1_ps(1.0f / 720);  // 2e-7 of the value, below bf16's rounding
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 120));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 24));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f / 6));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(p, n);
}

enum { tile_queries = 64 };

// The contracts are those of attention_forward() and attention_backward() in kernels.c; the softmax weights are rounded
// to bf16 too.
static void tiles_attention_forward(const float *qkv, float *y, float *log_sum, const int64_t *begin, long segments, long most, long heads,
                                    long groups) {
  static _Thread_local scratch_memory own;
  const long width = (heads + 2 * groups) * head_dim, per_group = heads / groups, wide = heads * head_dim;
  const long room = tiles_of(most, 32) * 32;
  const float scale = 1.0f / sqrtf(head_dim);
#pragma omp parallel
  {
    begin_tiles();
    float *scores = scratch(&own, tile_queries * room + tile_queries * head_dim + (2 * head_dim * room + tile_queries * (room + head_dim)) / 2, 4);
    float *sums = scores + tile_queries * room;
    uint16_t *keys_packed = (uint16_t *)(sums + tile_queries * head_dim), *values_packed = keys_packed + head_dim * room;
    uint16_t *weights = values_packed + head_dim * room, *queries = weights + tile_queries * room;
#pragma omp for schedule(dynamic) collapse(2)
    for (long s = 0; s < segments; ++s)
      for (long g = 0; g < groups; ++g) {
        const long first = begin[s], length = begin[s + 1] - first, deep_all = tiles_of(length, 32);
        const float *k = qkv + first * width + (heads + g) * head_dim, *v = k + groups * head_dim;
        pack_pairs_turned(keys_packed, k, width, head_dim, length);
        pack_pairs(values_packed, v, width, length, head_dim);
        for (long h = g * per_group; h < (g + 1) * per_group; ++h)
          for (long at = 0; at < length; at += tile_queries) {
            const long rows = less(tile_queries, length - at), keys = at + rows, deep = tiles_of(keys, 32);
            pack_rows(queries, qkv + (first + at) * width + h * head_dim, width, rows, head_dim);
            multiply_tiles(queries, 2, keys_packed, 2, 2, scores, room, tiles_of(rows, 16) * 16, tiles_of(keys, 16) * 16, 0);
            float inverse[tile_queries];
            for (long i = 0; i < tiles_of(rows, 16) * 16; ++i) {
              const float *row = scores + i * room;
              const long seen = i < rows ? at + i + 1 : 0;
              __m512 top = _mm512_set1_ps(-1e30f), sum = _mm512_setzero_ps();
              for (long j = 0; j < seen; j += 16) top = _mm512_mask_max_ps(top, first_lanes(seen - j), top, _mm512_load_ps(row + j));
              const __m512 highest = _mm512_set1_ps(_mm512_reduce_max_ps(top));
              for (long d = 0; d < deep; ++d) {
                __m512 p[2];
                for (long e = 0; e < 2; ++e) {
                  const long j = d * 32 + e * 16;
                  const __m512 x = _mm512_mul_ps(_mm512_sub_ps(_mm512_load_ps(row + j), highest), _mm512_set1_ps(scale));
                  p[e] = seen > j ? _mm512_maskz_mov_ps(first_lanes(seen - j), exp16(x)) : _mm512_setzero_ps();
                  sum = _mm512_add_ps(sum, p[e]);
                }
                _mm512_store_si512(weights + ((i / 16 * deep + d) * 16 + i % 16) * 32, to_bf16(p[0], p[1]));
              }
              if (i < rows) {
                const float total = _mm512_reduce_add_ps(sum);
                inverse[i] = 1.0f / total;
                log_sum[(first + at + i) * heads + h] = logf(total) + _mm512_cvtss_f32(highest) * scale;
              }
            }
            multiply_tiles(weights, deep, values_packed, deep_all, deep, sums, head_dim, tiles_of(rows, 16) * 16, head_dim, 0);
            for (long i = 0; i < rows; ++i)
              for (long j = 0; j < head_dim; ++j) y[(first + at + i) * wide + h * head_dim + j] = sums[i * head_dim + j] * inverse[i];
          }
      }
  }
}

static void tiles_attention_backward(const float *qkv, const float *y, const float *log_sum, const float *dy, float *d_qkv,
                                     const int64_t *begin, long segments, long most, long heads, long groups) {
  static _Thread_local scratch_memory own;
  const long width = (heads + 2 * groups) * head_dim, per_group = heads / groups, wide = heads * head_dim;
  const long room = tiles_of(most, 32) * 32, block = tile_queries * head_dim;
  const float scale = 1.0f / sqrtf(head_dim);
#pragma omp parallel
  {
    begin_tiles();
    float *scores = scratch(&own, 2 * tile_queries * room + 2 * head_dim * room + (3 * head_dim * room + 3 * tile_queries * room + 4 * block) / 2, 4);
    float *d_weights = scores + tile_queries * room, *dk_turned = d_weights + tile_queries * room, *dv_turned = dk_turned + head_dim * room;
    uint16_t *keys_turned = (uint16_t *)(dv_turned + head_dim * room), *values_turned = keys_turned + head_dim * room;
    uint16_t *keys_packed = values_turned + head_dim * room, *ds_rows = keys_packed + head_dim * room;
    uint16_t *ds_pairs = ds_rows + tile_queries * room, *p_pairs = ds_pairs + tile_queries * room;
    uint16_t *queries = p_pairs + tile_queries * room, *d_out = queries + block, *queries_turned = d_out + block;
    uint16_t *d_out_turned = queries_turned + block;
#pragma omp for schedule(dynamic) collapse(2)
    for (long s = 0; s < segments; ++s)
      for (long g = 0; g < groups; ++g) {
        const long first = begin[s], length = begin[s + 1] - first, deep_all = tiles_of(length, 32);
        const float *k = qkv + first * width + (heads + g) * head_dim, *v = k + groups * head_dim;
        float *dk = d_qkv + first * width + (heads + g) * head_dim, *dv = dk + groups * head_dim;
        pack_pairs_turned(keys_turned, k, width, head_dim, length);
        pack_pairs_turned(values_turned, v, width, head_dim, length);
        pack_pairs(keys_packed, k, width, length, head_dim);
        memset(dk_turned, 0, sizeof(float) * (size_t)(2 * head_dim * room));
        for (long h = g * per_group; h < (g + 1) * per_group; ++h)
          for (long at = 0; at < length; at += tile_queries) {
            const long rows = less(tile_queries, length - at), keys = at + rows, deep = tiles_of(keys, 32);
            const long rows_padded = tiles_of(rows, 32) * 32, keys_padded = tiles_of(keys, 16) * 16;
            const float *q = qkv + (first + at) * width + h * head_dim, *d = dy + (first + at) * wide + h * head_dim;
            const float *out = y + (first + at) * wide + h * head_dim;
            pack_rows(queries, q, width, rows, head_dim);
            pack_rows(d_out, d, wide, rows, head_dim);
            pack_rows_turned(queries_turned, q, width, head_dim, rows);
            pack_rows_turned(d_out_turned, d, wide, head_dim, rows);
            multiply_tiles(queries, 2, keys_turned, 2, 2, scores, room, tiles_of(rows, 16) * 16, keys_padded, 0);
            multiply_tiles(d_out, 2, values_turned, 2, 2, d_weights, room, tiles_of(rows, 16) * 16, keys_padded, 0);
            const long row_tiles = rows_padded / 32;
            for (long i = 0; i < rows_padded; i += 2) {
              float delta[2] = {0, 0}, log_total[2] = {0, 0};
              long seen[2] = {0, 0};
              for (long e = 0; e < 2 && i + e < rows; ++e) {
                for (long j = 0; j < head_dim; ++j) delta[e] += out[(i + e) * wide + j] * d[(i + e) * wide + j];
                log_total[e] = log_sum[(first + at + i + e) * heads + h];
                seen[e] = at + i + e + 1;
              }
              for (long t = 0; t < deep; ++t) {
                __m512 p[2][2], ds[2][2];  // [row][half]
                for (long e = 0; e < 2; ++e)
                  for (long half = 0; half < 2; ++half) {
                    const long j = t * 32 + half * 16;
                    const __mmask16 lanes = first_lanes(seen[e] - j);
                    if (!lanes) {
                      p[e][half] = ds[e][half] = _mm512_setzero_ps();
                      continue;
                    }
                    const __m512 x = _mm512_fmsub_ps(_mm512_load_ps(scores + (i + e) * room + j), _mm512_set1_ps(scale), _mm512_set1_ps(log_total[e]));
                    p[e][half] = _mm512_maskz_mov_ps(lanes, exp16(x));
                    const __m512 toward = _mm512_sub_ps(_mm512_load_ps(d_weights + (i + e) * room + j), _mm512_set1_ps(delta[e]));
                    ds[e][half] = _mm512_maskz_mul_ps(lanes, p[e][half], _mm512_mul_ps(toward, _mm512_set1_ps(scale)));
                  }
                for (long e = 0; e < 2; ++e)
                  _mm512_store_si512(ds_rows + (((i + e) / 16 * deep + t) * 16 + (i + e) % 16) * 32, to_bf16(ds[e][0], ds[e][1]));
                for (long half = 0; half < 2; ++half) {
                  const long to = (((t * 2 + half) * row_tiles + i / 32) * 16 + i % 32 / 2) * 32;
                  _mm512_store_si512(ds_pairs + to, pair_up(ds[0][half], ds[1][half]));
                  _mm512_store_si512(p_pairs + to, pair_up(p[0][half], p[1][half]));
                }
              }
            }
            multiply_tiles(ds_rows, deep, keys_packed, deep_all, deep, d_qkv + (first + at) * width + h * head_dim, width, rows, head_dim, 0);
            multiply_tiles(queries_turned, row_tiles, ds_pairs, row_tiles, row_tiles, dk_turned, room, head_dim, keys_padded, 1);
            multiply_tiles(d_out_turned, row_tiles, p_pairs, row_tiles, row_tiles, dv_turned, room, head_dim, keys_padded, 1);
          }
        for (long i = 0; i < length; ++i)
          for (long j = 0; j < head_dim; ++j) {
            dk[i * width + j] = dk_turned[j * room + i];
            dv[i * width + j] = dv_turned[j * room + i];
          }
      }
  }
}
