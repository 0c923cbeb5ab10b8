// Rows times packed weights of a block format, by integer products (definition: kernels/README.md). A row of x is
// rounded to signed bytes, 32 columns at a time. Per group of columns an output is a sum of integer products, which is
// exact in any order, and then one link of a chain of floats: sum = fma(scale * d, float(integers), sum), and with a
// minimum also fma(minimum, d * float(sum of the group's bytes of x), sum). So its bits depend only on its row of x and
// its row of w.

// ---- rows of x -----------------------------------------------------------------------------------------------------

/// The data shared by 32 columns of a row.
struct x_block {
  float d;                     // x = d q
  float sum;                   // d times the sum of all q
  std::int32_t minus;          // the sum of all q, negated
  std::int32_t minus_half[2];  // the same for each sixteen
};
inline constexpr std::size_t x_block_columns = 32;
inline constexpr std::size_t x_block_bytes = x_block_columns + sizeof(x_block);

/// A prepared row: all bytes q, then all x_blocks.
inline std::size_t prepared_row_bytes(std::size_t columns) {
  return round_up(columns / x_block_columns * x_block_bytes, 64);
}

/// Rows without whole blocks are never multiplied by weights in blocks.
std::size_t prepared_byte_rows(std::size_t rows, std::size_t columns) {
  return columns % x_block_columns == 0 ? rows * prepared_row_bytes(columns) : 0;
}

inline x_block prepare_block(const float* x, std::byte* q) {
  const f32x16 low = load(x);
  const f32x16 high = load(x + 16);
  // A number minus itself is zero, or NaN if it is not finite.
  const bool is_finite = sum(add(sub(low, low), sub(high, high))) == 0;
  const float most = largest(max(max(low, sub(zero(), low)), max(high, sub(zero(), high))));
  constexpr float least = 0x1p-100F;  // 127 / least is finite
  if (!is_finite || !(most >= least)) {
    std::memset(q, 0, x_block_columns);
    const float d = is_finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    return {d, d, 0, {0, 0}};
  }
  // A float of 2^23 to 2^24 has no bits below one: the sum is rounded to an integer in its low bits.
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

/// A few panels times a few rows, over one segment of k.
struct dot_tile {
  const std::byte* panel;   // the first panel at the segment
  std::size_t panel_bytes;  // distance between panels
  const std::byte* q;       // the first row at the segment
  const x_block* blocks;    // the first row's blocks at the segment
  std::size_t row_bytes;    // distance between rows of x
  std::size_t groups;       // number of groups in the segment
  float* y;
  std::size_t y_stride;
  std::size_t lanes;  // number of outputs that exist, of 16 per panel
  const float* bias;  // for these outputs, or nullptr
  bool first;         // chains begin here; otherwise they continue from y
  bool last;          // chains end here
  /// What to prefetch from memory meanwhile: this many bytes of each panel, for the first panel from here on; nullptr
  /// means what follows the current weights.
  const std::byte* ahead = nullptr;
  std::size_t ahead_bytes = 0;
};

/// Prefetches a tile's share into the second-level cache, a part with each group.
template<class Format, int Panels>
class read_ahead {
 public:
  explicit read_ahead(const dot_tile& t)
      : t_(t), step_((t.ahead_bytes + t.groups * 64 - 1) / std::max<std::size_t>(1, t.groups * 64) * 64) {}
  void next(std::size_t group) {
    if (t_.ahead == nullptr) return prefetch_weights(t_.panel + group * Format::group_bytes, Format::group_bytes);
    const std::size_t end = std::min(t_.ahead_bytes, done_ + step_);
    for (; done_ < end; done_ += 64) {
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) prefetch_far(t_.ahead + static_cast<std::size_t>(p) * t_.panel_bytes + done_);
    }
  }

 private:
  const dot_tile& t_;
  std::size_t step_;
  std::size_t done_ = 0;
};

template<class Format, int Rows, int Panels>
inline void add_dot_chains(const dot_tile& t, f32x16 (&acc)[Rows][Panels]) {
  read_ahead<Format, Panels> ahead(t);
  for (std::size_t g = 0; g < t.groups; ++g) {
    typename Format::head heads[Panels];
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) heads[p] = Format::open(t.panel + static_cast<std::size_t>(p) * t.panel_bytes, g);
    ahead.next(g);
    const std::byte* q = t.q + g * Format::group;
    const auto* blocks = reinterpret_cast<const std::byte*>(t.blocks + g * Format::group / x_block_columns);
    const auto block_of = [&](int r) {
      return reinterpret_cast<const x_block*>(blocks + static_cast<std::size_t>(r) * t.row_bytes);
    };
    dots<Format::bits, Format::offset> sums[Rows][Panels];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const x_block* b = block_of(r);
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) {
        sums[r][p] = begin_dots<Format::bits, Format::offset>(Format::group == x_block_columns ? &b->minus
                                                                                               : b->minus_half + g % 2);
      }
    }
    for_constants<Format::steps>([&](auto i) {
      dot_weights<Format::bits> w[Panels];
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) w[p] = ready<Format::bits>(Format::template bytes<i>(heads[p]));
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (int p = 0; p < Panels; ++p) {
          add_dots<i>(sums[r][p], w[p], q + static_cast<std::size_t>(r) * t.row_bytes + i * 4);
        }
      }
    });
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const x_block* b = block_of(r);
#pragma GCC unroll 4
      for (int p = 0; p < Panels; ++p) {
        acc[r][p] = fma(mul(heads[p].scale, broadcast(b->d)), as_floats(sums[r][p]), acc[r][p]);
        if constexpr (Format::has_minimum)
          acc[r][p] = fma(heads[p].minimum, broadcast(sum_of_group<Format::group>(*b, g)), acc[r][p]);
      }
    }
  }
}

/// A variant for targets that multiply two rows by eight columns at once: gemm_int8_pairs.inl.hpp.
template<class Format, int Rows>
void add_dot_chains_by_pairs(const dot_tile& t, f32x16 (&acc)[Rows][1]);

/// Outputs have one canonical NaN, because targets differ in which of several NaNs an instruction returns.
inline f32x16 finished(f32x16 sum, const float* bias, std::size_t lanes) {
  if (bias != nullptr) sum = add(sum, load_some(bias, lanes));
  return one_nan(sum);
}

template<class Format, int Rows, int Panels>
void run_dot_tile(const dot_tile& t) {
  const auto lanes_of = [&](int p) { return std::min<std::size_t>(16, t.lanes - 16 * static_cast<std::size_t>(p)); };
  f32x16 acc[Rows][Panels];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) {
      acc[r][p] = t.first ? zero() : load_some(t.y + r * t.y_stride + 16 * p, lanes_of(p));
      if (t.first) prefetch_to_write(t.y + r * t.y_stride + 16 * p);
    }
  }
  if constexpr (dots_of_row_pairs && Rows > 1) {
    add_dot_chains_by_pairs<Format>(t, acc);
  } else {
    add_dot_chains<Format>(t, acc);
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < Panels; ++p) {
      const std::size_t lanes = lanes_of(p);
      if (t.last) acc[r][p] = finished(acc[r][p], t.bias == nullptr ? nullptr : t.bias + 16 * p, lanes);
      store_some(t.y + r * t.y_stride + 16 * p, acc[r][p], lanes);
    }
  }
}

using dot_tile_function = void (*)(const dot_tile&);

/// Indexed by rows - 1.
template<class Format, int Panels, int... Rows>
constexpr auto dot_tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<dot_tile_function, sizeof...(Rows)>{run_dot_tile<Format, Rows + 1, Panels>...};
}
template<class Format, int Panels>
inline constexpr auto dot_tiles = dot_tile_table<Format, Panels>(std::make_integer_sequence<int, dot_rows_max>{});

/// Bytes of packed weights that all rows are multiplied by before the next ones: both, and the corresponding segment of
/// x, share a second-level cache.
inline constexpr std::size_t cached_weights_bytes = 65536;
/// Segments of k are multiples of this: whole units of every format.
inline constexpr std::size_t stretch_columns_step = 256;

/// Multiplies all rows by the panels [begin, begin + Panels).
template<class Format, int Panels>
void multiply_panels_by_dots(const gemm_args& a, std::size_t begin) {
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  const std::size_t row_tiles = (a.rows + dot_rows_max - 1) / dot_rows_max;
  const std::size_t stretches = std::max<std::size_t>(1, Panels * a.w.panel_bytes / cached_weights_bytes);
  const std::size_t columns_step = round_up((a.w.columns + stretches - 1) / stretches, stretch_columns_step);
  const auto at_column = [](std::size_t column) { return column / Format::group * Format::group_bytes; };
  const std::byte* const panel = a.w.panels + begin * a.w.panel_bytes;
  for (std::size_t k = 0; k < a.w.columns || k == 0; k += columns_step) {
    const std::size_t end = std::min(a.w.columns, k + columns_step);
    // What comes next: the next segment, or the next panels, which may belong to another thread or matrix.
    const std::size_t next_end = std::min(a.w.columns, end + columns_step);
    const std::byte* next = end < a.w.columns ? panel + at_column(end) : panel + Panels * a.w.panel_bytes;
    const std::size_t next_bytes =
        end < a.w.columns ? at_column(next_end) - at_column(end) : at_column(std::min(a.w.columns, columns_step));
    std::size_t row = 0;
    for (std::size_t tile = 0; tile < row_tiles; ++tile) {
      const auto share = [&](std::size_t part) { return next_bytes * part / row_tiles / 64 * 64; };
      const std::size_t rows_end = a.rows * (tile + 1) / row_tiles;  // tiles of nearly equal height
      const std::byte* x = a.prepared + row * row_bytes;
      dot_tiles<Format, Panels>[rows_end - row - 1](
          {.panel = panel + at_column(k),
           .panel_bytes = a.w.panel_bytes,
           .q = x + k,
           .blocks = reinterpret_cast<const x_block*>(x + a.w.columns) + k / x_block_columns,
           .row_bytes = row_bytes,
           .groups = (end - k) / Format::group,
           .y = a.y + row * a.y_stride + begin * 16,
           .y_stride = a.y_stride,
           .lanes = std::min<std::size_t>(16 * Panels, a.w.rows - begin * 16),
           .bias = a.bias == nullptr ? nullptr : a.bias + begin * 16,
           .first = k == 0,
           .last = end == a.w.columns,
           .ahead = row_tiles == 1 ? nullptr : next + share(tile),
           .ahead_bytes = share(tile + 1) - share(tile)});
      row = rows_end;
    }
    if (a.w.columns == 0) break;
  }
}

// Weights go directly from packed form into the sums. Unpacking four columns again for each tile of rows costs an
// instruction or two, compared with as many products as the tile has rows, and uses other execution ports.
template<class Format>
void multiply_by_dots(const gemm_args& a) {
  std::size_t panel = a.panel_begin;
  // A few rows wait for memory, which is faster with a single stream.
  const bool few = a.rows <= dot_rows_max;
  for (; !few && panel + dot_panels_max <= a.panel_end; panel += dot_panels_max) {
    multiply_panels_by_dots<Format, dot_panels_max>(a, panel);
  }
  for (; panel < a.panel_end; ++panel) multiply_panels_by_dots<Format, 1>(a, panel);
}

void gemm_int8(const gemm_args& a) {
  if (block_columns(a.w.type) == 1) return gemm(a);
  with_byte_format(a.w.type, [&]<class Format>() { multiply_by_dots<Format>(a); });
}
