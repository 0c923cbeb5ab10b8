#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "kernels/kv_layout.hpp"
#include "kernels/weight_type.hpp"

namespace redline::kernels {

/// How the two halves of a rotated pair are arranged in a head: adjacent, or half of the rotated part apart.
enum class rope_pairs : std::uint8_t { adjacent, half_split };

/// Outputs that are computed together, the lanes of one vector.
inline constexpr std::size_t panel_rows = 16;
[[nodiscard]] constexpr std::size_t panels_for(std::size_t rows) { return (rows + panel_rows - 1) / panel_rows; }
/// A weight matrix [rows, columns] in the layout of the table that packed it. Panel i has rows [16 i, 16 i + 16).
struct packed_view {
  weight_type type = weight_type::f32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t panel_bytes = 0;
  const std::byte* panels = nullptr;
};

/// y[m][n] = sum over k of x[m][k] * w[n][k], plus bias[n] if given, for the outputs n of panels [begin, end).
/// x: [rows, w.columns], rows x_stride floats apart. y: [rows, w.rows], rows y_stride floats apart.
struct gemm_args {
  packed_view w;
  std::size_t panel_begin = 0;
  std::size_t panel_end = 0;
  const float* x = nullptr;
  std::size_t x_stride = 0;
  std::size_t rows = 0;
  float* y = nullptr;
  std::size_t y_stride = 0;
  const float* bias = nullptr;          // [w.rows] or nullptr
  const std::byte* prepared = nullptr;  // the same rows as converted by kernel_table::prepare_rows, or nullptr
};

/// Cosines and sines of one position: cos[rotary_dim / 2], then sin[rotary_dim / 2].
using rope_angles = const float*;

/// Consecutive tokens of a sequence inside one key tile.
struct attention_tile {
  std::uint32_t first_slot = 0;
  std::uint32_t first_token = 0;   // index in the sequence's table
  std::uint16_t count = 0;         // 1..tile_tokens, all in the tile of first_slot
  std::uint16_t offset_index = 0;  // the rotation of the query that belongs to these keys
};

/// Attention of `rows` consecutive rows of one run, for the query heads that share one KV head. q:
/// [rows][group][head_dim], not rotated; row r begins at q + r * q_stride. out: the same layout. Row r sees the tokens
/// [0, visible + r) of the table, or the last `window` of them; tiles cover at least those, in token order.
/// angles: [offset_count][rows] rotations of the query, one set per distinct offset in the tiles; sets are
/// angles_stride apart.
/// records: if set, only the KV splits [split_begin, split_end) are computed, and their sums are saved for
/// join_attention, which writes the outputs; [split][row][group] of attention_record_floats() each, 64-byte aligned.
struct attention_args {
  const float* q = nullptr;
  std::size_t q_stride = 0;
  float* out = nullptr;
  std::size_t out_stride = 0;
  std::size_t rows = 0;
  std::size_t group = 0;
  std::size_t head_dim = 0;
  std::size_t rotary_dim = 0;
  rope_pairs pairs = rope_pairs::half_split;
  float scale = 1;               // applied to the scores before the exponential
  float soft_cap = 0;            // a scaled score s becomes soft_cap * tanh(s / soft_cap); 0 means unchanged
  std::size_t window = 0;        // tokens that a row sees, including its own, by their index in the table; 0 means all
  const float* sinks = nullptr;  // [group]: for each head, a score that takes part in the softmax but has no value
  std::size_t visible = 0;
  const attention_tile* tiles = nullptr;
  std::size_t tile_count = 0;
  const rope_angles* angles = nullptr;
  std::size_t angles_stride = 0;
  std::size_t offset_count = 0;
  kv_view kv;
  float* scratch = nullptr;  // attention_scratch_floats(), 64-byte aligned
  float* records = nullptr;
  std::size_t split_begin = 0;
  std::size_t split_end = std::numeric_limits<std::size_t>::max();
};

/// The first token that a row sees if it sees no token from `visible` on.
[[nodiscard]] constexpr std::size_t window_begin(std::size_t visible, std::size_t window) {
  return window == 0 || visible <= window ? 0 : visible - window;
}

/// Tokens of one KV split (Flash-Decoding): a multiple of attention_block_tokens.
inline constexpr std::size_t kv_split_tokens = 512;
[[nodiscard]] constexpr std::size_t count_kv_splits(std::size_t tokens) {
  return (tokens + kv_split_tokens - 1) / kv_split_tokens;
}
[[nodiscard]] constexpr std::size_t attention_record_floats(std::size_t head_dim) {
  return 32 + round_up(head_dim, 16);
}

/// Attention processes the context in blocks that end at multiples of this (ops/attention.inl.hpp).
inline constexpr std::size_t attention_block_tokens = 128;
/// The distance between scores of consecutive query vectors in a block: not a power of two, so that they use different
/// cache sets.
inline constexpr std::size_t attention_score_stride = attention_block_tokens + 16;

/// The scratch that `attention` needs, whatever the length of the context.
[[nodiscard]] constexpr std::size_t attention_scratch_floats(std::size_t rows, std::size_t group, std::size_t head_dim,
                                                             std::size_t offset_count) {
  const std::size_t vectors = round_up(rows * group, 16);
  const std::size_t width = round_up(head_dim, 32);
  return vectors * (width * (offset_count + 2) + attention_score_stride + 2 + 32 + tile_tokens + 64 + 272) +
         8 * width * tile_tokens + attention_block_tokens * width + 15 * 16;
}

/// The greatest of some floats, ignoring NaN, and its first index; minus infinity and 0 if none is greater.
struct row_best {
  float value = -std::numeric_limits<float>::infinity();
  std::uint32_t index = 0;
  /// Takes the other if it is greater, or equal with a lower index: the order of joining does not matter.
  void join(const row_best& other) {
    if (other.value > value || (other.value == value && other.index < index)) *this = other;
  }
};

// The gated delta rule: what one head of a recurrent layer remembers of a sequence is a matrix S of [keys, values]. A
// row makes it decay * S + key (outer) change with change = strength * (value - decay * S^T key), and reads S^T query.
// Source: Yang, Kautz, Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule" (2024), section 3.

/// Columns of S, that is dimensions of values, that are stored together: S is [head_dim / 32][head_dim keys][32
/// values].
inline constexpr std::size_t delta_columns = 32;

/// A change of S that is known.
struct delta_update {
  const float* key = nullptr;     // [head_dim]
  const float* change = nullptr;  // [head_dim]
  float decay = 1;
};
struct delta_row {
  const float *query = nullptr, *key = nullptr, *value = nullptr;  // [head_dim] each
  float decay = 1;                                                 // in (0, 1]
  float strength = 1;                                              // in (0, 1)
  float *change = nullptr, *out = nullptr;  // [head_dim] each, written; `change` for a later delta_update
};
/// Applies the updates to S, then the rows, of which the first `kept_count` change S and the others only a copy.
struct delta_args {
  float* state = nullptr;
  std::size_t head_dim = 0;  // a multiple of delta_columns
  const delta_update* updates = nullptr;
  std::size_t update_count = 0;
  const delta_row* rows = nullptr;
  std::size_t row_count = 0;
  std::size_t kept_count = 0;
  std::size_t group_begin = 0, group_end = 0;  // groups of delta_columns columns to compute
  float* scratch = nullptr;                    // [head_dim * delta_columns]
};

/// Every kernel of one target. All pointers are set. Kernels allocate nothing, are single-threaded and cannot fail. The
/// bits of a result depend only on its own inputs (README.md defines bit-exact).
struct kernel_table {
  std::string_view name;

  /// Whether outputs of a product are one chain of multiply-adds (README.md), so that all such tables give the same
  /// bits. If false, they are summed in an order specific to the table.
  bool one_chain = true;
  /// The relative error of one product x * w of a gemm before it is summed. 0 means that it is not rounded.
  float product_error = 0;
  /// The table with exact factors; nullptr if this table rounds none.
  const kernel_table* unrounded = nullptr;
  /// Callers split the panels of one gemm at multiples of this.
  std::size_t panels_step = 1;
  /// Panels that gemm multiplies together: fewer are slower.
  std::size_t panels_together = 4;
  /// Number of query vectors (rows x group) at which one call of `attention` is most efficient.
  std::size_t attention_vectors = 1;
  /// Rows whose products take about as long as reading their weights from memory: fewer rows save no time.
  std::size_t rows_beside_reading = 12;

  std::size_t (*panel_bytes)(weight_type type, std::size_t columns);
  /// Fills panels [begin, end) of `out` from the file's rows. source: [rows, columns]; rows past the end become zero.
  void (*pack)(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns, std::size_t begin,
               std::size_t end, std::byte* out);
  /// Unpacks row `row` as floats (embedding lookup). out: [w.columns]
  void (*unpack_row)(const packed_view& w, std::size_t row, float* out);
  void (*gemm)(const gemm_args& args);
  /// The size in bytes of rows of x in the form that `gemm` multiplies. 0 if gemm reads floats, or if there are so few
  /// rows that each call converts them itself.
  std::size_t (*prepared_bytes)(std::size_t rows, std::size_t columns);
  /// Writes rows [begin, end) of x in that form, once for all calls of `gemm`. out: prepared_bytes of all rows, 64-byte
  /// aligned. The part after the last row is undefined.
  void (*prepare_rows)(const float* x, std::size_t x_stride, std::size_t begin, std::size_t end, std::size_t columns,
                       std::byte* out);

  /// out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i]. out may be x.
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::size_t n, float* out);
  /// out[i] = (x[i] - mean(x)) / sqrt(variance(x) + epsilon) * weight[i] + bias[i]. out may be x.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon, std::size_t n, float* out);
  /// x[i] = scale * y[i] + x[i], rounded once.
  void (*add_scaled)(float* x, float scale, const float* y, std::size_t n);
  /// x[i] = e^x[i] / sum over j of e^x[j].
  void (*softmax)(float* x, std::size_t n);
  /// gate[i] = silu(gate[i]) * up[i].
  void (*silu_multiply)(float* gate, const float* up, std::size_t n);
  /// gate[i] = gelu(gate[i]) * up[i], with the tanh form of gelu; without `up` (nullptr) only gelu.
  void (*gelu_multiply)(float* gate, const float* up, std::size_t n);
  /// gate[i] = g / (1 + e^(-1.702 g)) * (u + 1) with g = min(gate[i], 7) and u = up[i] within [-7, 7] (gpt-oss).
  void (*clamped_swiglu)(float* gate, const float* up, std::size_t n);
  /// x[i] = cap * tanh(x[i] / cap).
  void (*soft_cap)(float* x, float cap, std::size_t n);
  /// x[i] = x[i] * sigmoid(gate[i]).
  void (*sigmoid_multiply)(const float* gate, float* x, std::size_t n);
  /// out[i] = sum over t of weights[t][i] * rows[t][i], t ascending, or its silu: a causal convolution of each channel.
  /// weights: [taps, n]. rows: a pointer to [n] for each tap, the newest last.
  void (*convolve)(const float* const* rows, const float* weights, std::size_t taps, std::size_t n, bool has_silu,
                   float* out);
  void (*delta_rule)(const delta_args& args);
  row_best (*best_of_row)(const float* x, std::size_t n);
  /// Rotates the leading rotary_dim dimensions and copies the rest. x, out: [head_dim], may be the same.
  void (*rotate)(rope_pairs pairs, const float* x, rope_angles angles, std::size_t rotary_dim, std::size_t head_dim,
                 float* out);

  /// Writes one token's key and value (head_dim floats each, the key rotated) to a slot, rounding to nearest even.
  void (*store_kv)(const kv_view& kv, std::size_t slot, std::size_t head_dim, const float* key, const float* value);
  /// Rotates the keys of slots [first_slot, first_slot + count) in place, all by the same angles (the cosines and sines
  /// of the number of positions they move), computing in floats and rounding once. Other slots keep their bits.
  void (*rotate_keys)(const kv_view& kv, std::size_t first_slot, std::size_t count, rope_pairs pairs,
                      rope_angles angles, std::size_t rotary_dim, std::size_t head_dim);
  void (*attention)(const attention_args& args);
  /// Computes outputs from the records of all KV splits, which it overwrites: the same bits as `attention` without
  /// records. Does not use scratch.
  void (*join_attention)(const attention_args& args);

  /// Conversions between floats and a storage type of floats, rounding to nearest even; NaN stays NaN.
  /// Narrowing to f16 saturates at +-65504.
  void (*narrow)(element_type type, const float* x, std::size_t n, void* out);
  void (*widen)(element_type type, const void* x, std::size_t n, float* out);

  /// Loops that measure the machine (machine_bounds.hpp): multiply-adds in registers; reading n floats, a multiple of
  /// 128. Both return a value that depends on all the work.
  std::size_t multiply_adds_per_iteration = 0;
  float (*multiply_add_loop)(std::size_t iterations);
  float (*read_loop)(const float* x, std::size_t n);
};

}  // namespace redline::kernels
