// Integer products with tiles: 16 rows of x, 16 outputs and one group of columns at a time, which TDPBSSD sums in
// int32. The bits are those of gemm_int8.inl.hpp, whose chains of floats continue from group to group. Needs that file
// and the tile verbs.
//
// A tile's sums are in registers that vectors cannot read: they are stored, loaded as vectors and added to sixteen rows
// of floats in registers. So three groups are in progress at a time: one is multiplied, one stored, one added.

/// The number of rows from which a tile is faster than vectors; fewer rows beyond whole tiles use vectors.
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
};
template<class Format>
using written_out_of = written_out<Format::bits, Format::offset, Format::has_minimum, Format::group>;

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
  std::size_t rows;  // rows that exist; the others are computed and discarded
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
  alignas(64) std::int32_t sums[2][16 * 16];
  const auto step = [&](auto parity, std::size_t g) {
    constexpr int now = decltype(parity)::value;
    if (g < t.groups) {
      tile_zero<now>();
      tile_load<x_tile + now>(t.q + g * Source::group, t.row_bytes);
      tile_load<w_tile + now>(t.panel + g * Source::group_bytes, layout::words_bytes);
      tile_multiply_bytes<now, x_tile + now, w_tile + now>();
    }
    if (g >= 2) {
      const std::size_t done = g - 2;
      const auto head = Source::open(t.panel, done);
      const auto* blocks = reinterpret_cast<const std::byte*>(t.blocks + done * Source::group / x_block_columns);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < 16; ++r) {
        const auto* b = reinterpret_cast<const x_block*>(blocks + r * t.row_bytes);
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

/// Multiplies whole tiles of rows, and a remainder that is large enough for one.
template<class Format>
void multiply_byte_tiles(const gemm_args& a) {
  using source = written_out_of<Format>;
  alignas(64) std::byte written[written_bytes];
  const byte_tile_session<Format::group> session;
  const std::size_t row_bytes = prepared_row_bytes(a.w.columns);
  const std::size_t groups = a.w.columns / Format::group;
  constexpr std::size_t step = written_bytes / source::group_bytes / 2 * 2;  // whole blocks of x
  for (std::size_t panel = a.panel_begin; panel < a.panel_end; ++panel) {
    for (std::size_t g = 0; g < groups || g == 0; g += step) {
      const std::size_t count = std::min(step, groups - g);
      write_signed_out<Format>(a.w.panels + panel * a.w.panel_bytes, g, g + count, written);
      for (std::size_t row = 0; row < a.rows; row += 16) {
        const std::byte* x = a.prepared + row * row_bytes;
        multiply_byte_tile<source>(
            {{.panel = written,
              .panel_bytes = 0,
              .q = x + g * Format::group,
              .blocks = reinterpret_cast<const x_block*>(x + a.w.columns) + g * Format::group / x_block_columns,
              .row_bytes = row_bytes,
              .groups = count,
              .y = a.y + row * a.y_stride + panel * 16,
              .y_stride = a.y_stride,
              .lanes = std::min<std::size_t>(16, a.w.rows - panel * 16),
              .bias = a.bias == nullptr ? nullptr : a.bias + panel * 16,
              .first = g == 0,
              .last = g + count == groups},
             /*rows=*/std::min<std::size_t>(16, a.rows - row)});
      }
    }
  }
}

void gemm_int8_by_tiles(const gemm_args& a) {
  const std::size_t rest = a.rows % 16;
  const std::size_t by_vectors = rest < byte_tile_rows_least ? rest : 0;
  const std::size_t by_tiles = a.rows - by_vectors;
  if (block_columns(a.w.type) == 1 || by_tiles == 0) return gemm_int8(a);
  gemm_args some = a;
  some.rows = by_tiles;
  with_byte_format(a.w.type, [&]<class Format>() { multiply_byte_tiles<Format>(some); });
  some.rows = by_vectors;
  some.y += by_tiles * a.y_stride;
  some.x += by_tiles * a.x_stride;
  some.prepared += by_tiles * prepared_row_bytes(a.w.columns);
  gemm_int8(some);
}

/// Tiles read rows in multiples of sixteen.
std::size_t prepared_byte_tile_rows(std::size_t rows, std::size_t columns) {
  return prepared_byte_rows(round_up(rows, 16), columns);
}

/// A table that computes products with integers by tiles.
kernel_table with_int8_tiles(kernel_table t) {
  t = with_int8(t);
  t.gemm = gemm_int8_by_tiles;
  t.prepared_bytes = prepared_byte_tile_rows;
  return t;
}
