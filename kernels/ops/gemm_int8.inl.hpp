// Rows times packed weights of a block format, by products of integers (definition: kernels/README.md). A row of x is
// rounded to signed bytes, 32 columns at a time. Per group of columns an output is a sum of integer products, which is
// exact in any order, and then one link of a chain of floats: sum = fma(scale * d, float(integers), sum), with a
// minimum also fma(minimum, d * float(sum of the group's bytes of x), sum). So its bits depend on its row of x and its
// row of w only.

// ---- rows of x -----------------------------------------------------------------------------------------------------

/// What 32 columns of a row share.
struct x_block {
  float d;                     // x = d q
  float sum;                   // d times the sum of all q
  std::int32_t minus;          // the sum of all q, negated
  std::int32_t minus_half[2];  // of each sixteen
};
inline constexpr std::size_t x_block_columns = 32;
inline constexpr std::size_t x_block_bytes = x_block_columns + sizeof(x_block);

/// A prepared row: all bytes q, then all x_blocks.
inline std::size_t prepared_row_bytes(std::size_t columns) {
  return round_up(columns / x_block_columns * x_block_bytes, 64);
}

/// Rows that are no whole blocks meet no weights in blocks.
std::size_t prepared_byte_rows(std::size_t rows, std::size_t columns) {
  return columns % x_block_columns == 0 ? rows * prepared_row_bytes(columns) : 0;
}

inline x_block prepare_block(const float* x, std::byte* q) {
  const f32x16 low = load(x);
  const f32x16 high = load(x + 16);
  // A number less itself is zero, but NaN for what is not finite.
  const bool is_finite = sum(add(sub(low, low), sub(high, high))) == 0;
  const float most = largest(max(max(low, sub(zero(), low)), max(high, sub(zero(), high))));
  constexpr float least = 0x1p-100F;  // 127 / least is finite
  if (!is_finite || !(most >= least)) {
    std::memset(q, 0, x_block_columns);
    const float d = is_finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    return {d, d, 0, {0, 0}};
  }
  // A float of 2^23 to 2^24 has no bits below one: the sum is rounded to an integer, which its low bits hold.
  const f32x16 steps = broadcast(127.0F / most);
  const f32x16 rounder = broadcast(0x1.8p23F);
  const f32x16 a = add(mul(low, steps), rounder);
  const f32x16 b = add(mul(high, steps), rounder);
  store_low_bytes(q, a);
  store_low_bytes(q + 16, b);
  const float d = most / 127.0F;
  const float sum_a = sum(sub(a, rounder));
  const float sum_b = sum(sub(b, rounder));
  const auto minus_a = -static_cast<std::int32_t>(sum_a);
  const auto minus_b = -static_cast<std::int32_t>(sum_b);
  return {d, d * (sum_a + sum_b), minus_a + minus_b, {minus_a, minus_b}};
}

void prepare_byte_rows(const float* x, std::size_t x_stride, std::size_t begin, std::size_t end, std::size_t columns,
                       std::byte* out) {
  const std::size_t blocks = columns / x_block_columns;
  for (std::size_t row = begin; row < end; ++row) {
    std::byte* q = out + row * prepared_row_bytes(columns);
    auto* block = reinterpret_cast<x_block*>(q + blocks * x_block_columns);
    for (std::size_t b = 0; b < blocks; ++b) {
      block[b] = prepare_block(x + row * x_stride + b * x_block_columns, q + b * x_block_columns);
    }
  }
}

/// d times the sum of the bytes of group g.
template<int Group>
inline float sum_of_group(const x_block& b, std::size_t g) {
  return Group == x_block_columns ? b.sum : b.d * static_cast<float>(-b.minus_half[g % 2]);
}

// ---- tiles of outputs ----------------------------------------------------------------------------------------------

/// One panel times a few rows.
struct dot_tile {
  const std::byte* panel;
  const std::byte* q;     // of the first row
  const x_block* blocks;  // likewise
  std::size_t row_bytes;  // from one row of x to the next
  std::size_t groups;
  float* y;
  std::size_t y_stride;
  std::size_t lanes;  // outputs that exist, of 16
  const float* bias;  // of these outputs, or nullptr
};

template<class Format, int Rows>
inline void add_dot_chains(const dot_tile& t, f32x16 (&acc)[Rows]) {
  const std::byte* const panel = t.panel;
  for (std::size_t g = 0; g < t.groups; ++g) {
    const auto head = Format::open(panel, g);
    prefetch_weights(panel + g * Format::group_bytes, Format::group_bytes);
    const std::byte* q = t.q + g * Format::group;
    const auto* blocks = reinterpret_cast<const std::byte*>(t.blocks + g * Format::group / x_block_columns);
    const auto block_of = [&](int r) {
      return reinterpret_cast<const x_block*>(blocks + static_cast<std::size_t>(r) * t.row_bytes);
    };
    dots<Format::bits, Format::offset> sums[Rows];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const x_block* b = block_of(r);
      sums[r] = begin_dots<Format::bits, Format::offset>(Format::group == x_block_columns ? &b->minus
                                                                                          : b->minus_half + g % 2);
    }
    for_constants<Format::steps>([&](auto i) {
      const auto w = ready<Format::bits>(Format::template bytes<i>(head));
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) add_dots<i>(sums[r], w, q + static_cast<std::size_t>(r) * t.row_bytes + i * 4);
    });
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const x_block* b = block_of(r);
      acc[r] = fma(mul(head.scale, broadcast(b->d)), as_floats(sums[r]), acc[r]);
      if constexpr (Format::has_minimum)
        acc[r] = fma(head.minimum, broadcast(sum_of_group<Format::group>(*b, g)), acc[r]);
    }
  }
}

/// The same where a target multiplies two rows with eight columns at once: gemm_int8_pairs.inl.hpp.
template<class Format, int Rows>
void add_dot_chains_by_pairs(const dot_tile& t, f32x16 (&acc)[Rows]);

/// There is one NaN among outputs: which of several an instruction hands on is the target's affair.
inline f32x16 finished(f32x16 sum, const float* bias, std::size_t lanes) {
  if (bias != nullptr) sum = add(sum, load_some(bias, lanes));
  return one_nan(sum);
}

template<class Format, int Rows>
void run_dot_tile(const dot_tile& t) {
  f32x16 acc[Rows];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) acc[r] = zero();
  if constexpr (dots_of_row_pairs && Rows > 1) {
    add_dot_chains_by_pairs<Format>(t, acc);
  } else {
    add_dot_chains<Format>(t, acc);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) store_some(t.y + r * t.y_stride, finished(acc[r], t.bias, t.lanes), t.lanes);
}

using dot_tile_function = void (*)(const dot_tile&);

/// [rows - 1]
template<class Format, int... Rows>
constexpr auto dot_tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<dot_tile_function, sizeof...(Rows)>{run_dot_tile<Format, Rows + 1>...};
}
template<class Format>
inline constexpr auto dot_tiles = dot_tile_table<Format>(std::make_integer_sequence<int, dot_rows_max>{});

/// Bytes of packed weights that all rows are multiplied by before the next: a part of a second-level cache, from which
/// all but the first tile of rows read them.
inline constexpr std::size_t cached_weights_bytes = 131072;

// Weights go from their packed form straight into the sums. Taking four columns apart again for each tile of rows costs
// an instruction or two beside as many products as the tile has rows, and those use other execution ports.
template<class Format>
void multiply_by_dots(const gemm_args& a) {
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  const std::size_t row_tiles = (a.rows + dot_rows_max - 1) / dot_rows_max;
  const std::size_t step = std::max<std::size_t>(1, cached_weights_bytes / std::max<std::size_t>(1, a.w.panel_bytes));
  for (std::size_t begin = a.panel_begin; begin < a.panel_end; begin += step) {
    const std::size_t panels_end = std::min(a.panel_end, begin + step);
    std::size_t row = 0;
    for (std::size_t tile = 0; tile < row_tiles; ++tile) {
      const std::size_t rows_end = a.rows * (tile + 1) / row_tiles;  // tiles of nearly equal height
      const std::byte* x = a.prepared + row * row_bytes;
      const auto run = dot_tiles<Format>[rows_end - row - 1];
      for (std::size_t panel = begin; panel < panels_end; ++panel) {
        run({.panel = a.w.panels + panel * a.w.panel_bytes,
             .q = x,
             .blocks = reinterpret_cast<const x_block*>(x + a.w.columns),
             .row_bytes = row_bytes,
             .groups = a.w.columns / Format::group,
             .y = a.y + row * a.y_stride + panel * 16,
             .y_stride = a.y_stride,
             .lanes = std::min<std::size_t>(16, a.w.rows - panel * 16),
             .bias = a.bias == nullptr ? nullptr : a.bias + panel * 16});
      }
      row = rows_end;
    }
  }
}

void gemm_int8(const gemm_args& a) {
  if (block_columns(a.w.type) == 1) return gemm(a);
  with_byte_format(a.w.type, [&]<class Format>() { multiply_by_dots<Format>(a); });
}
