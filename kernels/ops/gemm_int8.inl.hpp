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

// ---- blocks of outputs ---------------------------------------------------------------------------------------------

/// One block of outputs over one stretch of groups.
struct dot_tile {
  const std::byte* const* panels;  // at the stretch's first group
  const std::byte* q;              // likewise, of the first row
  const x_block* blocks;           // likewise
  std::size_t row_bytes;           // from one row of x to the next
  std::size_t groups;
  float* y;
  std::size_t y_stride;
  std::size_t lanes;  // outputs that exist, of Panels * 16
  bool first;         // chains begin here; else they go on from y
  bool last;          // and end here
  const float* bias;  // of this block, or nullptr; used at the end
};

template<class Source, int Rows, int Panels, bool Ahead>
inline void continue_dot_chains(const dot_tile& t, f32x16 (&acc)[Rows][Panels]) {
  const std::byte* panels[Panels];
#pragma GCC unroll 4
  for (int p = 0; p < Panels; ++p) panels[p] = t.panels[p];
  for (std::size_t g = 0; g < t.groups; ++g) {
    typename Source::head head[Panels];
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) {
      head[p] = Source::open(panels[p], g);
      if constexpr (Ahead) prefetch_group_after<Source>(panels[p], g);
    }
    const std::byte* q = t.q + g * Source::group;
    const auto* blocks = reinterpret_cast<const std::byte*>(t.blocks + g * Source::group / x_block_columns);
    dots<Source::bits, Source::offset> sums[Rows][Panels];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto* b = reinterpret_cast<const x_block*>(blocks + static_cast<std::size_t>(r) * t.row_bytes);
      const std::int32_t* minus = Source::group == x_block_columns ? &b->minus : b->minus_half + g % 2;
      const auto begin = begin_dots<Source::bits, Source::offset>(minus);
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) sums[r][p] = begin;
    }
    for_constants<Source::steps>([&](auto i) {
      dot_weights<Source::bits> w[Panels];
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) w[p] = ready<Source::bits>(Source::template bytes<i>(head[p]));
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const std::byte* x = q + static_cast<std::size_t>(r) * t.row_bytes + i * 4;
#pragma GCC unroll 4
        for (int p = 0; p < Panels; ++p) add_dots<i>(sums[r][p], w[p], x);
      }
    });
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const auto* b = reinterpret_cast<const x_block*>(blocks + static_cast<std::size_t>(r) * t.row_bytes);
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) {
        acc[r][p] = fma(mul(head[p].scale, broadcast(b->d)), as_floats(sums[r][p]), acc[r][p]);
        if constexpr (Source::has_minimum)
          acc[r][p] = fma(head[p].minimum, broadcast(sum_of_group<Source::group>(*b, g)), acc[r][p]);
      }
    }
  }
}

/// The same where a target multiplies two rows with eight columns at once: gemm_int8_pairs.inl.hpp.
template<class Source, bool Ahead, int Rows, int Panels>
void continue_dot_chains_by_pairs(const dot_tile& t, f32x16 (&acc)[Rows][Panels]);

/// There is one NaN among outputs: which of several an instruction hands on is the target's affair.
inline f32x16 finished(f32x16 sum, const float* bias, std::size_t lanes) {
  if (bias != nullptr) sum = add(sum, load_some(bias, lanes));
  return one_nan(sum);
}

template<class Source, int Rows, int Panels, bool Ahead = false>
void run_dot_tile(const dot_tile& t) {
  f32x16 acc[Rows][Panels];
  const auto lanes_of = [&](int p) { return std::min<std::size_t>(16, t.lanes - static_cast<std::size_t>(p) * 16); };
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) {
      acc[r][p] = t.first ? zero() : load_some(t.y + r * t.y_stride + p * 16, lanes_of(p));
    }
  }
  if constexpr (dots_of_row_pairs && Rows > 1) {
    continue_dot_chains_by_pairs<Source, Ahead>(t, acc);
  } else {
    continue_dot_chains<Source, Rows, Panels, Ahead>(t, acc);
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) {
      if (t.last) acc[r][p] = finished(acc[r][p], t.bias == nullptr ? nullptr : t.bias + p * 16, lanes_of(p));
      store_some(t.y + r * t.y_stride + p * 16, acc[r][p], lanes_of(p));
    }
  }
}

using dot_tile_function = void (*)(const dot_tile&);

/// Few rows go straight over packed weights, one panel after the other, as they lie in memory: up to dot_rows_max at
/// once, and so few times that unpacking the panel again, which is in the cache then, costs less than writing it out.
inline constexpr std::size_t packed_rows_max = std::size_t{3} * dot_rows_max;

/// [rows - 1]
template<class Format, int... Rows>
constexpr auto packed_tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<dot_tile_function, sizeof...(Rows)>{run_dot_tile<Format, Rows + 1, 1, true>...};
}
template<class Format>
inline constexpr auto packed_tiles = packed_tile_table<Format>(std::make_integer_sequence<int, dot_rows_max>{});

/// More rows are cut into tiles of nearly equal height (7 are 4 + 3, not 6 + 1), so never lower than this.
inline constexpr int dot_rows_min = (dot_rows_max + 1) / 2;

/// [rows - dot_rows_min][0: one panel, 1: dot_panels of them]
template<class Source, int... Rows>
constexpr auto written_tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<std::array<dot_tile_function, 2>, sizeof...(Rows)>{
      {{run_dot_tile<Source, dot_rows_min + Rows, 1>, run_dot_tile<Source, dot_rows_min + Rows, dot_panels>}...}};
}
template<class Source>
inline constexpr auto written_tiles =
    written_tile_table<Source>(std::make_integer_sequence<int, dot_rows_max - dot_rows_min + 1>{});

/// Bytes of weights that are written out at once: a part of a second-level cache. Most rows fit whole, so that sums
/// stay in registers and packed weights are read in order.
inline constexpr std::size_t written_bytes = 131072;

template<class Format>
void multiply_few_rows(const gemm_args& a) {
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  const std::size_t row_blocks = (a.rows + dot_rows_max - 1) / dot_rows_max;
  for (std::size_t panel = a.panel_begin; panel < a.panel_end; ++panel) {
    const std::byte* at[] = {a.w.panels + panel * a.w.panel_bytes};
    std::size_t row = 0;
    for (std::size_t b = 0; b < row_blocks; ++b) {
      const std::size_t end = a.rows * (b + 1) / row_blocks;
      const std::byte* x = a.prepared + row * row_bytes;
      packed_tiles<Format>[end - row - 1]({.panels = at,
                                           .q = x,
                                           .blocks = reinterpret_cast<const x_block*>(x + a.w.columns),
                                           .row_bytes = row_bytes,
                                           .groups = a.w.columns / Format::group,
                                           .y = a.y + row * a.y_stride + panel * 16,
                                           .y_stride = a.y_stride,
                                           .lanes = std::min<std::size_t>(16, a.w.rows - panel * 16),
                                           .first = true,
                                           .last = true,
                                           .bias = a.bias == nullptr ? nullptr : a.bias + panel * 16});
      row = end;
    }
  }
}

/// Panels beside each other times all rows, stretch by stretch.
template<class Format>
void multiply_rows_by(const gemm_args& a, std::size_t panel, std::size_t panels_count, std::byte* written) {
  using source = written_out_of<Format>;
  const std::size_t step = written_bytes / panels_count / source::group_bytes / 2 * 2;  // whole blocks of x
  const std::size_t groups = a.w.columns / Format::group;
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  const std::size_t row_blocks = (a.rows + dot_rows_max - 1) / dot_rows_max;
  const std::byte* at[dot_panels];
  for (std::size_t g = 0; g < groups || g == 0; g += step) {
    const std::size_t count = std::min(step, groups - g);
    for (std::size_t p = 0; p < panels_count; ++p) {
      std::byte* to = written + p * step * source::group_bytes;
      write_out<Format>(a.w.panels + (panel + p) * a.w.panel_bytes, g, g + count, to);
      at[p] = to;
    }
    std::size_t row = 0;
    for (std::size_t b = 0; b < row_blocks; ++b) {
      const std::size_t end = a.rows * (b + 1) / row_blocks;
      const std::byte* x = a.prepared + row * row_bytes;
      written_tiles<source>[end - row - dot_rows_min][panels_count > 1 ? 1 : 0](
          {.panels = at,
           .q = x + g * Format::group,
           .blocks = reinterpret_cast<const x_block*>(x + a.w.columns) + g * Format::group / x_block_columns,
           .row_bytes = row_bytes,
           .groups = count,
           .y = a.y + row * a.y_stride + panel * 16,
           .y_stride = a.y_stride,
           .lanes = std::min(panels_count * 16, a.w.rows - panel * 16),
           .first = g == 0,
           .last = g + count == groups,
           .bias = a.bias == nullptr ? nullptr : a.bias + panel * 16});
      row = end;
    }
  }
}

template<class Format>
void multiply_rows(const gemm_args& a) {
  alignas(64) std::byte written[written_bytes];
  for (std::size_t panel = a.panel_begin; panel < a.panel_end;) {
    const std::size_t count = panel + dot_panels <= a.panel_end ? dot_panels : 1;
    multiply_rows_by<Format>(a, panel, count, written);
    panel += count;
  }
}

void gemm_int8(const gemm_args& a) {
  if (block_columns(a.w.type) == 1) return gemm(a);
  if (a.rows == 0) return;
  with_byte_format(a.w.type, [&]<class Format>() {
    if (a.rows <= packed_rows_max) {
      multiply_few_rows<Format>(a);
    } else {
      multiply_rows<Format>(a);
    }
  });
}
