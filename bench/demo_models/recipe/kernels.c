// The arithmetic of a training step on one CPU: fp32, row-major, with OpenMP over rows. Products are computed by the
// BLAS (limited to one thread, so that OpenMP's threads can take blocks as they become free), or in bf16 where the CPU has
// AMX or AVX512-BF16 and EXACT is not defined. The loops are plain; gcc -O3 -march=native vectorizes them.
#include <cblas.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { head_dim = 64, query_block = 128 };

#if defined(__AVX512BF16__) && !defined(EXACT)
#include "tiles.h"
#else
enum { tiles_lent = 0 };
#define multiply(...)
#define tiles_attention_forward(...)
#define tiles_attention_backward(...)
#endif

// Whether products round to bf16.
long rounds(void) { return tiles_lent; }

// exp with a relative error below 2e-7 and without a call, so that loops around it vectorize.
static inline float fast_exp(float x) {
  x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  const float n = rintf(x * 1.44269504f);
  const float r = x - n * 0.693359375f + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  union { int32_t i; float f; } scale = {((int32_t)n + 127) << 23};
  return p * scale.f;
}

// c[m, n] = a * b + beta * c, a and b as given or transposed.
void gemm(int transpose_a, int transpose_b, long m, long n, long k, const float *a, long lda, const float *b, long ldb,
          float *c, long ldc, float beta) {
  if (tiles_lent) {
    multiply(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, ldc, beta != 0);
    return;
  }
  const long block = m >= 2048 ? 256 : m >= 256 ? 64 : 16;
#pragma omp parallel for schedule(dynamic)
  for (long at = 0; at < m; at += block) {
    const long rows = m - at < block ? m - at : block;
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans, transpose_b ? CblasTrans : CblasNoTrans, rows, n, k, 1.0f,
                transpose_a ? a + at : a + at * lda, lda, b, ldb, beta, c + at * ldc, ldc);
  }
}

// sum = x + add (add may be null); y = sum / rms(sum) * gain
void norm_forward(const float *x, const float *add, const float *gain, float *sum, float *y, float *inverse_rms, long rows, long width,
                  float epsilon) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i) {
    const float *in = x + i * width;
    float *out = sum + i * width;
    float squares = 0;
    for (long j = 0; j < width; ++j) {
      const float value = add ? in[j] + add[i * width + j] : in[j];
      out[j] = value;
      squares += value * value;
    }
    const float inverse = 1.0f / sqrtf(squares / (float)width + epsilon);
    inverse_rms[i] = inverse;
    for (long j = 0; j < width; ++j) y[i * width + j] = out[j] * inverse * gain[j];
  }
}

// dx (+)= the norm's gradient for dy; gain_gradient +=
void norm_backward(const float *dy, const float *x, const float *gain, const float *inverse_rms, float *dx, float *gain_gradient, long rows,
                   long width, int accumulate) {
#pragma omp parallel
  {
    float *local = calloc((size_t)width, sizeof(float));
#pragma omp for schedule(static)
    for (long i = 0; i < rows; ++i) {
      const float *in = x + i * width, *d = dy + i * width;
      float *out = dx + i * width;
      const float inverse = inverse_rms[i];
      float dot = 0;
      for (long j = 0; j < width; ++j) {
        const float unit = in[j] * inverse;
        local[j] += d[j] * unit;
        dot += d[j] * gain[j] * unit;
      }
      dot /= (float)width;
      for (long j = 0; j < width; ++j) {
        const float value = inverse * (d[j] * gain[j] - dot * in[j] * inverse);
        out[j] = accumulate ? out[j] + value : value;
      }
    }
#pragma omp critical
    for (long j = 0; j < width; ++j) gain_gradient[j] += local[j];
    free(local);
  }
}

// gate_up: [rows, 2 * width], gate first
void swiglu_forward(const float *gate_up, float *out, long rows, long width) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i) {
    const float *gate = gate_up + i * 2 * width, *up = gate + width;
    for (long j = 0; j < width; ++j) out[i * width + j] = gate[j] / (1.0f + fast_exp(-gate[j])) * up[j];
  }
}

void swiglu_backward(const float *d_out, const float *gate_up, float *d_gate_up, long rows, long width) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i) {
    const float *gate = gate_up + i * 2 * width, *up = gate + width, *d = d_out + i * width;
    float *d_gate = d_gate_up + i * 2 * width, *d_up = d_gate + width;
    for (long j = 0; j < width; ++j) {
      const float s = 1.0f / (1.0f + fast_exp(-gate[j]));
      d_up[j] = d[j] * gate[j] * s;
      d_gate[j] = d[j] * up[j] * s * (1.0f + gate[j] * (1.0f - s));
    }
  }
}

// Adds the bias, then rotates queries and keys to their positions (half-split).
// qkv: [rows, heads + 2 * groups, head_dim]
void bias_rope_forward(float *qkv, const float *bias, const float *cosine, const float *sine, const int32_t *position, long rows, long heads,
                       long groups) {
  const long width = (heads + 2 * groups) * head_dim;
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i) {
    float *row = qkv + i * width;
    for (long j = 0; j < width; ++j) row[j] += bias[j];
    const float *c = cosine + position[i] * (head_dim / 2), *s = sine + position[i] * (head_dim / 2);
    for (long h = 0; h < heads + groups; ++h) {
      float *low = row + h * head_dim, *high = low + head_dim / 2;
      for (long j = 0; j < head_dim / 2; ++j) {
        const float a = low[j], b = high[j];
        low[j] = a * c[j] - b * s[j];
        high[j] = b * c[j] + a * s[j];
      }
    }
  }
}

void bias_rope_backward(float *d_qkv, float *bias_gradient, const float *cosine, const float *sine, const int32_t *position, long rows,
                        long heads, long groups) {
  const long width = (heads + 2 * groups) * head_dim;
#pragma omp parallel
  {
    float *local = calloc((size_t)width, sizeof(float));
#pragma omp for schedule(static)
    for (long i = 0; i < rows; ++i) {
      float *row = d_qkv + i * width;
      const float *c = cosine + position[i] * (head_dim / 2), *s = sine + position[i] * (head_dim / 2);
      for (long h = 0; h < heads + groups; ++h) {
        float *low = row + h * head_dim, *high = low + head_dim / 2;
        for (long j = 0; j < head_dim / 2; ++j) {
          const float a = low[j], b = high[j];
          low[j] = a * c[j] + b * s[j];
          high[j] = b * c[j] - a * s[j];
        }
      }
      for (long j = 0; j < width; ++j) local[j] += row[j];
    }
#pragma omp critical
    for (long j = 0; j < width; ++j) bias_gradient[j] += local[j];
    free(local);
  }
}

static void product(int ta, int tb, long m, long n, long k, const float *a, long lda, const float *b, long ldb, float *c, long ldc, float beta) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, a, lda, b, ldb, beta, c, ldc);
}

static long longest(const int64_t *begin, long segments) {
  long most = 0;
  for (long s = 0; s < segments; ++s) most = begin[s + 1] - begin[s] > most ? begin[s + 1] - begin[s] : most;
  return most;
}

// Causal attention within each segment [begin[s], begin[s + 1]). y: [rows, heads, head_dim], log_sum: [rows, heads]
void attention_forward(const float *qkv, float *y, float *log_sum, const int64_t *begin, long segments, long heads, long groups) {
  const long width = (heads + 2 * groups) * head_dim, most = longest(begin, segments), per_group = heads / groups;
  const float scale = 1.0f / sqrtf(head_dim);
  if (tiles_lent) {
    tiles_attention_forward(qkv, y, log_sum, begin, segments, most, heads, groups);
    return;
  }
#pragma omp parallel
  {
    float *scores = malloc(sizeof(float) * (size_t)(query_block * most));
#pragma omp for schedule(dynamic) collapse(2)
    for (long s = 0; s < segments; ++s)
      for (long h = 0; h < heads; ++h) {
        const long first = begin[s], length = begin[s + 1] - first;
        const float *q = qkv + first * width + h * head_dim;
        const float *k = qkv + first * width + (heads + h / per_group) * head_dim, *v = k + groups * head_dim;
        for (long at = 0; at < length; at += query_block) {
          const long rows = length - at < query_block ? length - at : query_block, keys = at + rows;
          product(0, 1, rows, keys, head_dim, q + at * width, width, k, width, scores, keys, 0);
          for (long i = 0; i < rows; ++i) {
            float *row = scores + i * keys, top = -1e30f, sum = 0;
            const long seen = at + i + 1;
            for (long j = 0; j < seen; ++j) top = row[j] > top ? row[j] : top;
            for (long j = 0; j < seen; ++j) {
              row[j] = fast_exp((row[j] - top) * scale);
              sum += row[j];
            }
            for (long j = 0; j < seen; ++j) row[j] /= sum;
            memset(row + seen, 0, sizeof(float) * (size_t)(keys - seen));
            log_sum[(first + at + i) * heads + h] = logf(sum) + top * scale;
          }
          product(0, 0, rows, head_dim, keys, scores, keys, v, width, y + ((first + at) * heads + h) * head_dim, heads * head_dim, 0);
        }
      }
    free(scores);
  }
}

void attention_backward(const float *qkv, const float *y, const float *log_sum, const float *dy, float *d_qkv, const int64_t *begin,
                        long segments, long heads, long groups) {
  const long width = (heads + 2 * groups) * head_dim, most = longest(begin, segments), per_group = heads / groups, wide = heads * head_dim;
  const float scale = 1.0f / sqrtf(head_dim);
  if (tiles_lent) {
    tiles_attention_backward(qkv, y, log_sum, dy, d_qkv, begin, segments, most, heads, groups);
    return;
  }
#pragma omp parallel
  {
    float *scores = malloc(sizeof(float) * (size_t)(query_block * most)), *d_scores = malloc(sizeof(float) * (size_t)(query_block * most));
#pragma omp for schedule(dynamic) collapse(2)
    for (long s = 0; s < segments; ++s)
      for (long g = 0; g < groups; ++g) {
        const long first = begin[s], length = begin[s + 1] - first;
        const float *k = qkv + first * width + (heads + g) * head_dim, *v = k + groups * head_dim;
        float *dk = d_qkv + first * width + (heads + g) * head_dim, *dv = dk + groups * head_dim;
        for (long i = 0; i < length; ++i) {
          memset(dk + i * width, 0, sizeof(float) * head_dim);
          memset(dv + i * width, 0, sizeof(float) * head_dim);
        }
        for (long h = g * per_group; h < (g + 1) * per_group; ++h)
          for (long at = 0; at < length; at += query_block) {
            const long rows = length - at < query_block ? length - at : query_block, keys = at + rows;
            const float *q = qkv + (first + at) * width + h * head_dim;
            const float *out = y + (first + at) * wide + h * head_dim, *d_out = dy + (first + at) * wide + h * head_dim;
            product(0, 1, rows, keys, head_dim, q, width, k, width, scores, keys, 0);
            product(0, 1, rows, keys, head_dim, d_out, wide, v, width, d_scores, keys, 0);
            for (long i = 0; i < rows; ++i) {
              float *p = scores + i * keys, *d = d_scores + i * keys, delta = 0;
              for (long j = 0; j < head_dim; ++j) delta += out[i * wide + j] * d_out[i * wide + j];
              const float log_total = log_sum[(first + at + i) * heads + h];
              const long seen = at + i + 1;
              for (long j = 0; j < seen; ++j) {
                p[j] = fast_exp(p[j] * scale - log_total);
                d[j] = p[j] * (d[j] - delta) * scale;
              }
              memset(p + seen, 0, sizeof(float) * (size_t)(keys - seen));
              memset(d + seen, 0, sizeof(float) * (size_t)(keys - seen));
            }
            product(0, 0, rows, head_dim, keys, d_scores, keys, k, width, d_qkv + (first + at) * width + h * head_dim, width, 0);
            product(1, 0, keys, head_dim, rows, d_scores, keys, q, width, dk, width, 1);
            product(1, 0, keys, head_dim, rows, scores, keys, d_out, wide, dv, width, 1);
          }
      }
    free(scores);
    free(d_scores);
  }
}

// Cross entropy of each row; the logits become scale[i] * (softmax - wanted), where wanted is the one token, or
// (1 - mix) of it and mix of the teacher's softmax.
void cross_entropy(float *logits, const float *teacher, float mix, const int64_t *wanted, const float *scale, float *loss, float *right,
                   long rows, long vocabulary) {
#pragma omp parallel for schedule(static)
  for (long i = 0; i < rows; ++i) {
    float *row = logits + i * vocabulary, top = -1e30f, sum = 0;
    const float *guide = teacher ? teacher + i * vocabulary : NULL;
    for (long j = 0; j < vocabulary; ++j) top = row[j] > top ? row[j] : top;
    const float wanted_logit = row[wanted[i]];
    for (long j = 0; j < vocabulary; ++j) {
      row[j] = fast_exp(row[j] - top);
      sum += row[j];
    }
    loss[i] = logf(sum) + top - wanted_logit;
    right[i] = wanted_logit >= top;
    const float factor = scale[i] / sum;
    for (long j = 0; j < vocabulary; ++j) row[j] *= factor;
    row[wanted[i]] -= scale[i] * (guide ? 1.0f - mix : 1.0f);
    if (guide) {
      float guide_top = -1e30f, guide_sum = 0;
      for (long j = 0; j < vocabulary; ++j) guide_top = guide[j] > guide_top ? guide[j] : guide_top;
      for (long j = 0; j < vocabulary; ++j) guide_sum += fast_exp(guide[j] - guide_top);
      const float weight = scale[i] * mix / guide_sum;
      for (long j = 0; j < vocabulary; ++j) row[j] -= weight * fast_exp(guide[j] - guide_top);
    }
  }
}

// Newton-Schulz (Jordan and others, Muon, 2024): each matrix becomes, nearly, the closest one whose singular values are all one.
// x[i]: [rows[i], columns[i]], rows <= columns.
void orthogonalise(float **x, const long *rows, const long *columns, long count) {
#pragma omp parallel for schedule(dynamic)
  for (long i = 0; i < count; ++i) {
    const long m = rows[i], n = columns[i];
    float *a = malloc(sizeof(float) * (size_t)(2 * m * m + m * n)), *b = a + m * m, *y = b + m * m;
    float squares = 0;
    for (long j = 0; j < m * n; ++j) squares += x[i][j] * x[i][j];
    const float scale = 1.0f / (sqrtf(squares) + 1e-7f);
    for (long j = 0; j < m * n; ++j) x[i][j] *= scale;
    for (int round = 0; round < 5; ++round) {
      gemm(0, 1, m, m, n, x[i], n, x[i], n, a, m, 0);
      gemm(0, 0, m, m, m, a, m, a, m, b, m, 0);
      for (long j = 0; j < m * m; ++j) b[j] = 2.0315f * b[j] - 4.7750f * a[j];
      gemm(0, 0, m, n, m, b, m, x[i], n, y, n, 0);
      for (long j = 0; j < m * n; ++j) x[i][j] = 3.4445f * x[i][j] + y[j];
    }
    free(a);
  }
}
