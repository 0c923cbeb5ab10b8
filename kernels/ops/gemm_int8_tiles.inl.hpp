// Integer products with tiles: 16 rows of x, 16 outputs and one group of columns at a time, which TDPBSSD sums in
// int32. The bits are those of gemm_int8.inl.hpp, whose chains of floats continue from group to group. Needs that file
// and the tile verbs.
//
// A tile's sums are in registers that vectors cannot read: they are stored, loaded as vectors and added to sixteen rows
// of floats in registers. So three groups are in progress at a time: one is multiplied, one stored, one added.

/// The number of rows from which a tile is faster than vectors. More rows never use vectors for a remainder, because
/// those would read all weights again.
inline constexpr std::size_t byte_tile_rows_least = 6;

/// Expanded groups of any format: whole bytes, and floats for scale and minimum.
template<int Bits, int Offset, bool Minimum, int Group>
struct written_out : byte_format<Bits, Offset, Minimum, Group> {
  static constexpr std::size_t scale_at = Group / 4 * layout::words_bytes;
  static constexpr std::size_t group_bytes = scale_at + (Minimum ? 128 : 64);
  struct head {
    f32x16 scale;
    f32x16 minimum;
    const std::byte* words;
  };
  static head open(const std::byte* panel, std::size_t g) {
    const std::byte* at = panel + g * group_bytes;
    const auto* floats = reinterpret_cast<const float*>(at + scale_at);
    return {load(floats), Minimum ? load(floats + 16) : zero(), at};
  }
  template<int I>
  static words16 bytes(const head& h) {
    return load_words(h.words + I * layout::words_bytes);
  }
  static const std::byte* words(const std::byte* panel, std::size_t g) { return panel + g * group_bytes; }
  static void read_ahead(const std::byte*, std::size_t) {}
};
template<class Format>
using written_out_of = written_out<Format::bits, Format::offset, Format::has_minimum, Format::group>;

/// Weights that are signed bytes as they are packed, so that tiles read them in place.
struct packed_signed : q8_0_bytes {
  static const std::byte* words(const std::byte* panel, std::size_t g) { return open(panel, g).q; }
  static void read_ahead(const std::byte* panel, std::size_t g) {
    prefetch_weights(panel + g * group_bytes, group_bytes);
  }
};

/// The number of rows up to which reading in place is faster than writing out, which aligns the weights.
inline constexpr std::size_t packed_rows_max = 48;

/// Bytes of weights expanded at once: a part of a second-level cache. Most panels fit as a whole, so that sums stay in
/// registers.
inline constexpr std::size_t written_bytes = 131072;

/// Writes groups [begin, end) of a packed panel as signed bytes, in the form of written_out with its offset subtracted.
template<class Format>
void write_signed_out(const std::byte* panel, std::size_t begin, std::size_t end, std::byte* out) {
  using written = written_out_of<Format>;
  for (std::size_t g = begin; g < end; ++g, out += written::group_bytes) {
    const auto head = Format::open(panel, g);
    prefetch_weights(panel + g * Format::group_bytes, Format::group_bytes);
    for_constants<Format::steps>([&](auto i) {
      store_words(out + i * layout::words_bytes, bytes_less<Format::offset>(Format::template bytes<i>(head)));
    });
    auto* floats = reinterpret_cast<float*>(out + written::scale_at);
    store(floats, head.scale);
    if constexpr (Format::has_minimum) store(floats + 16, head.minimum);
  }
}

/// Sixteen rows of x over one segment of a panel's groups.
struct byte_tile : dot_tile {
  std::size_t rows;  // rows that exist; integer sums of the others are computed and discarded
};

template<class Source>
void multiply_byte_tile(const byte_tile& t) {
  constexpr int x_tile = 2;
  constexpr int w_tile = 4;
  f32x16 acc[16];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < 16; ++r) {
    acc[r] = t.first || r >= t.rows ? zero() : load_some(t.y + r * t.y_stride, t.lanes);
  }
  // A quarter of the tile is added at a time. Rows that do not exist take the last one's floats: what memory contains
  // there may be denormal, and a product with a denormal number takes a hundred times as long.
  const std::byte* blocks[16];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < 16; ++r) {
    blocks[r] = reinterpret_cast<const std::byte*>(t.blocks) + std::min(r, t.rows - 1) * t.row_bytes;
  }
  alignas(64) std::int32_t sums[2][16 * 16];
  const auto step = [&](auto parity, std::size_t g) {
    constexpr int now = decltype(parity)::value;
    if (g < t.groups) {
      tile_zero<now>();
      tile_load<x_tile + now>(t.q + g * Source::group, t.row_bytes);
      tile_load<w_tile + now>(Source::words(t.panel, g), layout::words_bytes);
      Source::read_ahead(t.panel, g);
      tile_multiply_bytes<now, x_tile + now, w_tile + now>();
    }
    if (g >= 2) {
      const std::size_t done = g - 2;
      const auto head = Source::open(t.panel, done);
      const std::size_t block = done * Source::group / x_block_columns * sizeof(x_block);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < 16; ++r) {
        if (r % 4 == 0 && r >= t.rows) break;
        const auto* b = reinterpret_cast<const x_block*>(blocks[r] + block);
        acc[r] = fma(mul(head.scale, broadcast(b->d)), load_integers(sums[now] + r * 16), acc[r]);
        if constexpr (Source::has_minimum)
          acc[r] = fma(head.minimum, broadcast(sum_of_group<Source::group>(*b, done)), acc[r]);
      }
    }
    if (g >= 1 && g <= t.groups) tile_store<1 - now>(sums[1 - now], 64);
  };
  for (std::size_t g = 0; g < t.groups + 2; g += 2) {
    step(std::integral_constant<int, 0>{}, g);
    if (g + 1 < t.groups + 2) step(std::integral_constant<int, 1>{}, g + 1);
  }
#pragma GCC unroll 16
  for (std::size_t r = 0; r < 16; ++r) {
    if (r >= t.rows) break;
    if (t.last) acc[r] = finished(acc[r], t.bias, t.lanes);
    store_some(t.y + r * t.y_stride, acc[r], t.lanes);
  }
}

/// Multiplies all rows by `count` groups of a panel from group g on.
template<class Source>
void multiply_byte_segment(const gemm_args& a, std::size_t panel, const std::byte* weights, std::size_t g,
                           std::size_t count) {
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  for (std::size_t row = 0; row < a.rows; row += 16) {
    const std::byte* x = a.prepared + row * row_bytes;
    multiply_byte_tile<Source>(
        {{.panel = weights,
          .panel_bytes = 0,
          .q = x + g * Source::group,
          .blocks = reinterpret_cast<const x_block*>(x + a.w.columns) + g * Source::group / x_block_columns,
          .row_bytes = row_bytes,
          .groups = count,
          .y = a.y + row * a.y_stride + panel * 16,
          .y_stride = a.y_stride,
          .lanes = std::min<std::size_t>(16, a.w.rows - panel * 16),
          .bias = a.bias == nullptr ? nullptr : a.bias + panel * 16,
          .first = g == 0,
          .last = g + count == a.w.columns / Source::group},
         /*rows=*/std::min<std::size_t>(16, a.rows - row)});
  }
}

template<class Format>
void multiply_byte_tiles(const gemm_args& a) {
  using source = written_out_of<Format>;
  const byte_tile_session<Format::group> session;
  const std::size_t groups = a.w.columns / Format::group;
  if constexpr (std::is_same_v<Format, q8_0_bytes>) {
    if (a.rows <= packed_rows_max) {
      for (std::size_t panel = a.panel_begin; panel < a.panel_end; ++panel) {
        multiply_byte_segment<packed_signed>(a, panel, a.w.panels + panel * a.w.panel_bytes, 0, groups);
      }
      return;
    }
  }
  alignas(64) std::byte written[written_bytes];
  constexpr std::size_t step = written_bytes / source::group_bytes / 2 * 2;  // whole blocks of x
  for (std::size_t panel = a.panel_begin; panel < a.panel_end; ++panel) {
    for (std::size_t g = 0; g < groups || g == 0; g += step) {
      const std::size_t count = std::min(step, groups - g);
      write_signed_out<Format>(a.w.panels + panel * a.w.panel_bytes, g, g + count, written);
      multiply_byte_segment<source>(a, panel, written, g, count);
    }
  }
}

void gemm_int8_by_tiles(const gemm_args& a) {
  if (block_columns(a.w.type) == 1 || a.rows < byte_tile_rows_least) return gemm_int8(a);
  with_byte_format(a.w.type, [&]<class Format>() { multiply_byte_tiles<Format>(a); });
}

/// Tiles read rows in multiples of sixteen.
std::size_t prepared_byte_tile_rows(std::size_t rows, std::size_t columns) {
  return prepared_byte_rows(round_up(rows, 16), columns);
}

// Tables are listed on every CPU, so what makes them is compiled for the one that all have.
#pragma GCC push_options
#pragma GCC reset_options
/// A table that computes products with integers by tiles.
kernel_table with_int8_tiles(kernel_table t) {
  t = with_int8(t);
  t.gemm = gemm_int8_by_tiles;
  t.prepared_bytes = prepared_byte_tile_rows;
  return t;
}
#pragma GCC pop_options
