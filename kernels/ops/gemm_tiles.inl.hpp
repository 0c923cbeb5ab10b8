// Rows times packed weights with bf16 tiles: 16 rows of x, 16 outputs, 32 columns at a time. x and the weights are
// rounded to bf16; products are summed in f32.
//
// Order of every sum: per 32 columns, the even and the odd columns form one chain each; the two are joined and added to
// the sum of the earlier columns (the definition of TDPBF16PS). So an output's bits depend only on its row of x and its
// row of w, not on the segments, row tiles and panels computed together.
//
// Sums stay in tile registers over all columns. A panel's weights become tiles just before their first use, while
// earlier tiles are multiplied: the vector units expand while the tile unit multiplies. Further row blocks find them in
// the second-level cache.

inline constexpr std::size_t tile_columns = 32;
inline constexpr std::size_t tile_numbers = 16 * tile_columns;  // bf16 numbers in one tile of x or w
inline constexpr std::size_t rows_together = 256;
inline constexpr std::size_t sum_tiles = 4;  // registers for sums: row tiles x panels of a block
inline constexpr std::size_t tile_panels_max = sum_tiles;
inline constexpr std::size_t ring_tiles = 4;                // per panel, if one row block uses them
inline constexpr std::size_t every_tile = ~std::size_t{0};  // w_mask of a block that stores all its tiles
inline constexpr std::size_t tiles_ahead = 2;
/// Tiles of x and of one panel that fit into a second-level cache together. Longer rows are processed in segments.
inline constexpr std::size_t x_tiles_max = 768;
inline constexpr std::size_t w_tiles_max = 256;

struct alignas(64) tile_scratch {
  std::uint16_t x[x_tiles_max * tile_numbers];  // [row tile][tile along the columns][16 rows][32]
  std::uint16_t w[w_tiles_max * tile_numbers];  // [panel][tile][16 pairs of columns][16 outputs][2]
};
static_assert(w_tiles_max >= tile_panels_max * ring_tiles);

inline tile_scratch& scratch_of_thread() {
  static thread_local const std::unique_ptr<tile_scratch> scratch{new tile_scratch{}};
  return *scratch;
}

struct f32_format {
  static constexpr int group = 1;
  static constexpr std::size_t group_bytes = 64;
  using head = const std::byte*;
  static head open(const std::byte* panel, std::size_t g) { return panel + g * group_bytes; }
  template<int>
  static f32x16 weight(head h) {
    return load(reinterpret_cast<const float*>(h));
  }
};

/// Tile `tile` of a panel whose matrix has this many columns; columns past the end are zeros.
using expand_tile_function = void (*)(const std::byte* panel, std::size_t tile, std::size_t columns,
                                      std::uint16_t* out);

template<class Format>
void expand_tile(const std::byte* panel, std::size_t tile, std::size_t columns, std::uint16_t* out) {
  constexpr std::size_t groups = tile_columns / Format::group;
  prefetch_weights(panel + tile * groups * Format::group_bytes, groups * Format::group_bytes);
  if constexpr (Format::group == 1) {
    const std::size_t first = tile * tile_columns;
    for (std::size_t k = first; k < first + tile_columns; k += 2, out += 32) {
      const f32x16 even = k < columns ? Format::template weight<0>(Format::open(panel, k)) : zero();
      const f32x16 odd = k + 1 < columns ? Format::template weight<0>(Format::open(panel, k + 1)) : zero();
      store(out, narrow_pairs(even, odd));
    }
  } else {
    for (std::size_t g = 0; g < groups; ++g) {
      const auto head = Format::open(panel, tile * groups + g);
      for_constants<Format::group / 2>([&](auto pair) {
        constexpr int even = 2 * decltype(pair)::value;
        store(out, narrow_pairs(Format::template weight<even>(head), Format::template weight<even + 1>(head)));
        out += 32;
      });
    }
  }
}

inline expand_tile_function tile_expander_of(weight_type type) {
  if (type == weight_type::f32) return expand_tile<f32_format>;
  return with_format(type, []<class Format>() -> expand_tile_function { return expand_tile<Format>; });
}

/// Writes one row of x as a row of `tiles` bf16 tiles; numbers from `count` on are zeros.
inline void narrow_row(const float* x, std::size_t count, std::size_t tiles, std::uint16_t* out) {
  for (std::size_t t = 0; t < tiles; ++t, out += tile_numbers) {
    const std::size_t left = count - std::min(count, t * tile_columns);
    const float* from = x + t * tile_columns;
    if (left >= tile_columns) {
      store(out, narrow_both(load(from), load(from + 16)));
    } else {
      const f32x16 low = left == 0 ? zero() : load_n(from, std::min<std::size_t>(left, 16));
      const f32x16 high = left <= 16 ? zero() : load_n(from + 16, left - 16);
      store(out, narrow_both(low, high));
    }
  }
}

/// Writes rows [begin, end) of x, `tiles` tiles from column `first` on: out [row tile][tile], at the index of each row.
/// Missing rows of the last row tile are left as they are, because no row depends on another.
inline void narrow_rows(const float* x, std::size_t x_stride, std::size_t begin, std::size_t end, std::size_t columns,
                        std::size_t first, std::size_t tiles, std::uint16_t* out) {
  for (std::size_t row = begin; row < end; ++row) {
    narrow_row(x + row * x_stride + first, columns - first, tiles,
               out + (row / 16 * tiles * 16 + row % 16) * tile_columns);
  }
}

inline std::size_t tiles_for(std::size_t columns) { return (columns + tile_columns - 1) / tile_columns; }

std::size_t prepared_tile_bytes(std::size_t rows, std::size_t columns) {
  constexpr std::size_t numbers_min = 16384;  // rounding them takes a microsecond
  if (rows * columns < numbers_min) return 0;
  return round_up(rows, 16) * tiles_for(columns) * tile_columns * sizeof(std::uint16_t);
}

void prepare_tile_rows(const float* x, std::size_t x_stride, std::size_t begin, std::size_t end, std::size_t columns,
                       std::byte* out) {
  narrow_rows(x, x_stride, begin, end, columns, 0, tiles_for(columns), reinterpret_cast<std::uint16_t*>(out));
}

/// RowTiles x Panels tiles of outputs over one segment of columns.
struct tile_block {
  const std::uint16_t* x;          // first row tile: [depth] tiles
  std::size_t x_step;              // distance to the next row tile
  const std::byte* const* panels;  // packed
  expand_tile_function expand;     // nullptr if w already contains all of the segment's tiles
  std::size_t first_tile;          // first tile of the segment
  std::size_t depth;               // number of tiles of the segment
  std::size_t columns;             // columns of the matrix
  std::uint16_t* w;                // [panel][w_tiles] tiles
  std::size_t w_tiles;             // tiles of one panel in w
  std::size_t w_mask;              // a tile's index in w is its number & this
  float* y;
  std::size_t y_stride;
  std::size_t rows;   // number of rows that exist, of RowTiles * 16
  std::size_t lanes;  // number of outputs that exist, of Panels * 16
  bool first;         // sums begin here; otherwise they continue from y
  const float* bias;  // for this block; given with the last segment
};

template<int RowTiles, int Panels>
inline void multiply_whole_block(const tile_block& b, float* y, std::size_t y_stride) {
  constexpr int x_tile = RowTiles * Panels;
  constexpr int x_registers = std::min(RowTiles, 2);
  constexpr int w_tile = x_tile + x_registers;
  constexpr int w_registers = std::min(Panels, 8 - w_tile);
  const auto sums_at = [&](int c) { return y + c / Panels * 16 * y_stride + c % Panels * 16; };
  for_constants<RowTiles * Panels>([&](auto c) {
    if (b.first) {
      tile_zero<c>();
    } else {
      tile_load<c>(sums_at(c), y_stride * sizeof(float));
    }
  });
  const auto place = [&](int panel, std::size_t t) {
    return b.w + (static_cast<std::size_t>(panel) * b.w_tiles + (t & b.w_mask)) * tile_numbers;
  };
  const auto expand = [&](int panel, std::size_t t) {
    if (t < b.depth) b.expand(b.panels[panel], b.first_tile + t, b.columns, place(panel, t));
  };
  const auto load_x = [&](auto r, std::size_t t) {
    tile_load<x_tile + r % x_registers>(b.x + static_cast<std::size_t>(r) * b.x_step + t * tile_numbers, 64);
  };
  if (b.expand != nullptr) {
    for (std::size_t t = 0; t < tiles_ahead; ++t) {
      for (int p = 0; p < Panels; ++p) expand(p, t);
    }
  }
  for (std::size_t t = 0; t < b.depth; ++t) {
    if constexpr (RowTiles <= x_registers) for_constants<RowTiles>([&](auto r) { load_x(r, t); });
    for_constants<Panels>([&](auto p) {
      constexpr int w = w_tile + decltype(p)::value % w_registers;
      if (b.expand != nullptr) expand(p, t + tiles_ahead);
      tile_load<w>(place(p, t), 64);
      for_constants<RowTiles>([&](auto r) {
        if constexpr (RowTiles > x_registers) load_x(r, t);
        tile_multiply<r * Panels + p, x_tile + r % x_registers, w>();
      });
    });
  }
  for_constants<RowTiles * Panels>([&](auto c) { tile_store<c>(sums_at(c), y_stride * sizeof(float)); });
}

inline void add_bias(const tile_block& b) {
  if (b.bias == nullptr) return;
  for (std::size_t r = 0; r < b.rows; ++r) {
    float* y = b.y + r * b.y_stride;
    for_chunks(b.lanes, [&](std::size_t i, std::size_t lanes) {
      store_some(y + i, add(load_some(y + i, lanes), load_some(b.bias + i, lanes)), lanes);
    });
  }
}

template<int RowTiles, int Panels>
void multiply_block(const tile_block& b) {
  constexpr std::size_t height = RowTiles * 16;
  constexpr std::size_t width = Panels * 16;
  if (b.rows == height && b.lanes == width) {
    multiply_whole_block<RowTiles, Panels>(b, b.y, b.y_stride);
  } else {
    alignas(64) float sums[height * width];
    if (!b.first) {
      std::fill_n(sums, height * width, 0.0F);
      for (std::size_t r = 0; r < b.rows; ++r) std::copy_n(b.y + r * b.y_stride, b.lanes, sums + r * width);
    }
    multiply_whole_block<RowTiles, Panels>(b, sums, width);
    for (std::size_t r = 0; r < b.rows; ++r) std::copy_n(sums + r * width, b.lanes, b.y + r * b.y_stride);
  }
  add_bias(b);
}

/// Indexed as [row tiles - 1][log2(panels)]; eight registers contain the sums, x and at least one tile of weights.
using block_function = void (*)(const tile_block&);
inline constexpr block_function blocks_by_size[sum_tiles][3] = {
    {multiply_block<1, 1>, multiply_block<1, 2>, multiply_block<1, 4>},
    {multiply_block<2, 1>, multiply_block<2, 2>, nullptr},
    {multiply_block<3, 1>, nullptr, nullptr},
    {multiply_block<4, 1>, nullptr, nullptr}};

/// The number of panels multiplied together for this many row tiles: a power of two.
inline std::size_t panels_beside_rows(std::size_t row_tiles) {
  return std::bit_floor(sum_tiles / std::min(sum_tiles, row_tiles));
}

/// Multiplies the block's panels by `rows` rows, as many at a time as sums fit into registers. The first of them expand
/// the weights for all.
inline void multiply_rows(tile_block b, std::size_t rows, std::size_t panels) {
  const std::size_t height = sum_tiles / panels * 16;
  const auto log2_panels = static_cast<std::size_t>(std::countr_zero(panels));
  for (std::size_t row = 0; row < rows; row += height) {
    b.rows = std::min(height, rows - row);
    blocks_by_size[(b.rows - 1) / 16][log2_panels](b);
    b.expand = nullptr;
    b.x += height / 16 * b.x_step;
    b.y += height * b.y_stride;
  }
}

void gemm_by_tiles(const gemm_args& a) {
  if (a.rows == 0) return;
  tile_scratch& s = scratch_of_thread();
  const tile_session session;
  const std::size_t tiles = tiles_for(a.w.columns);
  const auto* prepared = reinterpret_cast<const std::uint16_t*>(a.prepared);
  for (std::size_t row = 0; row < a.rows; row += rows_together) {
    const std::size_t rows = std::min(rows_together, a.rows - row);
    const std::size_t row_tiles = (rows + 15) / 16;
    const bool one_block = row_tiles <= sum_tiles;
    const std::size_t x_depth = x_tiles_max / row_tiles;
    const std::size_t depth_max = one_block ? x_depth : std::min(x_depth, w_tiles_max);
    for (std::size_t first = 0; first < tiles || first == 0; first += depth_max) {
      const std::size_t depth = std::min(depth_max, tiles - first);
      if (prepared == nullptr) {
        narrow_rows(a.x + row * a.x_stride, a.x_stride, 0, rows, a.w.columns, first * tile_columns, depth, s.x);
      }
      for (std::size_t panel = a.panel_begin; panel < a.panel_end;) {
        std::size_t count = panels_beside_rows(row_tiles);
        while (count > a.panel_end - panel) count /= 2;
        const std::byte* packed[tile_panels_max];
        for (std::size_t p = 0; p < count; ++p) packed[p] = a.w.panels + (panel + p) * a.w.panel_bytes;
        const bool last = first + depth == tiles;
        multiply_rows({.x = prepared == nullptr ? s.x : prepared + (row / 16 * tiles + first) * tile_numbers,
                       .x_step = (prepared == nullptr ? depth : tiles) * tile_numbers,
                       .panels = packed,
                       .expand = tile_expander_of(a.w.type),
                       .first_tile = first,
                       .depth = depth,
                       .columns = a.w.columns,
                       .w = s.w,
                       .w_tiles = one_block ? ring_tiles : depth,
                       .w_mask = one_block ? ring_tiles - 1 : every_tile,
                       .y = a.y + row * a.y_stride + panel * 16,
                       .y_stride = a.y_stride,
                       .rows = 0,
                       .lanes = std::min(count * 16, a.w.rows - panel * 16),
                       .first = first == 0,
                       .bias = last && a.bias != nullptr ? a.bias + panel * 16 : nullptr},
                      rows, count);
        panel += count;
      }
      if (depth == 0) break;
    }
  }
}

/// Does multiply-adds with tiles that stay in registers.
float tile_multiply_loop(std::size_t iterations) {
  const tile_session session;
  for_constants<8>([](auto t) { tile_zero<t>(); });
  for (std::size_t i = 0; i < iterations; ++i) {
    tile_multiply<0, 4, 6>();
    tile_multiply<1, 4, 7>();
    tile_multiply<2, 5, 6>();
    tile_multiply<3, 5, 7>();
  }
  alignas(64) float sums[16 * 16];
  tile_store<0>(sums, 64);
  return sums[0];
}

/// Small integers and their sums are exact in bf16, so working tiles give exact results.
[[maybe_unused]] bool tiles_multiply_integers() {
  constexpr std::size_t rows = 35, columns = 72, outputs = 100;
  const auto x_at = [](std::size_t r, std::size_t k) { return static_cast<float>((3 * r + 5 * k) % 13) - 6; };
  const auto w_at = [](std::size_t n, std::size_t k) { return static_cast<float>((7 * n + 2 * k) % 11) - 5; };
  std::vector<float> x(rows * columns), w(round_up(outputs, 16) * columns), y(rows * outputs);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t k = 0; k < columns; ++k) x[r * columns + k] = x_at(r, k);
  }
  for (std::size_t n = 0; n < outputs; ++n) {
    for (std::size_t k = 0; k < columns; ++k) w[(n / 16 * columns + k) * 16 + n % 16] = w_at(n, k);
  }
  gemm_by_tiles({.w = {weight_type::f32, outputs, columns, columns * 64, reinterpret_cast<const std::byte*>(w.data())},
                 .panel_begin = 0,
                 .panel_end = panels_for(outputs),
                 .x = x.data(),
                 .x_stride = columns,
                 .rows = rows,
                 .y = y.data(),
                 .y_stride = outputs});
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t n = 0; n < outputs; ++n) {
      float sum = 0;
      for (std::size_t k = 0; k < columns; ++k) sum += x_at(r, k) * w_at(n, k);
      if (y[r * outputs + n] != sum) return false;
    }
  }
  return true;
}
