// Rows times packed weights. Every output is one chain of fused multiply-adds over k = 0 .. columns - 1, started at
// zero, then the bias: its bits depend on its row of x and its row of w, on nothing else. Blocking over rows, panels
// and k only decides when a link of the chain is computed; a float kept in y between two links is the same float.

// How one panel, 16 rows of w interleaved by k, is stored and read. `unit`: k-steps that share a header.

struct f32_panel {
  static constexpr std::size_t unit = 1;
  static constexpr std::size_t unit_bytes = 64;
  struct header {};
  static header open(const std::byte*) { return {}; }
  static f32x16 weights(const std::byte* at, header, std::size_t) { return load(reinterpret_cast<const float*>(at)); }
};

struct f16_panel {
  static constexpr std::size_t unit = 1;
  static constexpr std::size_t unit_bytes = 32;
  struct header {};
  static header open(const std::byte*) { return {}; }
  static f32x16 weights(const std::byte* at, header, std::size_t) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
};

struct bf16_panel {
  static constexpr std::size_t unit = 1;
  static constexpr std::size_t unit_bytes = 32;
  struct header {};
  static header open(const std::byte*) { return {}; }
  static f32x16 weights(const std::byte* at, header, std::size_t) {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(at));
  }
};

/// Block of 32 k: 16 scales as f16, then int8 [32][16]. An 8-bit integer times an 11-bit scale is exact in a float.
struct q8_0_panel {
  static constexpr std::size_t unit = 32;
  static constexpr std::size_t unit_bytes = 32 + 32 * 16;
  struct header {
    f32x16 scales;
  };
  static header open(const std::byte* at) { return {load_f16(reinterpret_cast<const std::uint16_t*>(at))}; }
  static f32x16 weights(const std::byte* at, header h, std::size_t i) {
    return mul(load_i8(reinterpret_cast<const std::int8_t*>(at + 32 + i * 16)), h.scales);
  }
};

/// Continues Rows x Panels chains over `depth` k-steps (whole units). panels: where the first step of each lies.
/// step_bytes: from one unit of a panel to its next.
template<class Panel, int Rows, int Panels>
inline void continue_chains(const std::byte* const* panels, std::size_t step_bytes, const float* x,
                            std::size_t x_stride, std::size_t depth, f32x16 (&acc)[Rows][Panels]) {
  const std::byte* at[Panels];
#pragma GCC unroll 8
  for (int p = 0; p < Panels; ++p) at[p] = panels[p];
  for (std::size_t k = 0; k < depth; k += Panel::unit) {
    typename Panel::header head[Panels];
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) head[p] = Panel::open(at[p]);
#pragma GCC unroll 1
    for (std::size_t i = 0; i < Panel::unit; ++i) {
      f32x16 w[Panels];
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) w[p] = Panel::weights(at[p], head[p], i);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const f32x16 xk = broadcast(x[r * x_stride + k + i]);
#pragma GCC unroll 8
        for (int p = 0; p < Panels; ++p) acc[r][p] = fma(xk, w[p], acc[r][p]);
      }
    }
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) at[p] += step_bytes;
  }
}

/// One block of outputs over one stretch of k.
struct gemm_tile {
  const std::byte* const* panels;  // at the first k of the stretch
  const float* x;                  // likewise
  std::size_t x_stride;
  std::size_t depth;
  std::size_t step_bytes;  // from one unit of k to the next
  float* y;
  std::size_t y_stride;
  std::size_t lanes;            // outputs that exist, of Panels * 16
  bool first;                   // chains begin here; else they go on from y
  const float* bias = nullptr;  // of this block; given with the last stretch
};

template<class Panel, int Rows, int Panels>
void run_tile(const gemm_tile& t) {
  f32x16 acc[Rows][Panels];
  const auto lanes_of = [&](int p) { return t.lanes > static_cast<std::size_t>(p) * 16 + 16 ? 16 : t.lanes - p * 16; };
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) {
      acc[r][p] = t.first ? zero() : load_some(t.y + r * t.y_stride + p * 16, lanes_of(p));
    }
  }
  continue_chains<Panel, Rows, Panels>(t.panels, t.step_bytes, t.x, t.x_stride, t.depth, acc);
#pragma GCC unroll 8
  for (int p = 0; p < Panels; ++p) {
    const std::size_t lanes = lanes_of(p);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      if (t.bias != nullptr) acc[r][p] = add(acc[r][p], load_some(t.bias + p * 16, lanes));
      store_some(t.y + r * t.y_stride + p * 16, acc[r][p], lanes);
    }
  }
}

using tile_function = void (*)(const gemm_tile&);

/// Widest power of two of panels that the accumulators allow beside `rows` rows.
constexpr int panels_beside(int rows) {
  int panels = 8;
  while (panels > 1 && panels * rows > gemm_accumulators) panels /= 2;
  return panels;
}

template<class Panel, int Rows, int Panels>
constexpr tile_function tile_or_null() {
  if constexpr (Panels <= panels_beside(Rows)) {
    return run_tile<Panel, Rows, Panels>;
  } else {
    return nullptr;
  }
}

/// tiles[rows - 1][log2(panels)].
template<class Panel, int... Rows>
constexpr auto tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<std::array<tile_function, 4>, sizeof...(Rows)>{
      {{tile_or_null<Panel, Rows + 1, 1>(), tile_or_null<Panel, Rows + 1, 2>(), tile_or_null<Panel, Rows + 1, 4>(),
        tile_or_null<Panel, Rows + 1, 8>()}...}};
}
template<class Panel>
inline constexpr auto tiles_of = tile_table<Panel>(std::make_integer_sequence<int, gemm_rows_max>{});

/// k-steps per stretch when many rows share the weights: 4 panels of 256 floats stay in the second-level cache.
inline constexpr std::size_t stretch_depth = 256;

/// One group of panels (8, 4, 2 or 1 of them) times all rows.
template<class Panel>
void gemm_group(const gemm_args& a, std::size_t panel, std::size_t panels_count, std::size_t log2_panels) {
  // More rows than one block: dequantise a stretch once and let all row blocks read the floats.
  const bool many = a.rows > gemm_rows_max;
  const bool expand = many && Panel::unit_bytes != f32_panel::unit_bytes;
  const std::size_t depth_step = many ? stretch_depth : a.w.columns;
  const std::size_t blocks = (a.rows + gemm_rows_max - 1) / gemm_rows_max;
  alignas(64) float expanded[8][stretch_depth * 16];
  const std::byte* at[8];
  gemm_tile t{.panels = at,
              .x_stride = a.x_stride,
              .step_bytes = expand ? f32_panel::unit_bytes : Panel::unit_bytes,
              .y_stride = a.y_stride,
              .lanes = std::min(panels_count * 16, a.w.rows - panel * 16)};
  for (std::size_t k = 0; k < a.w.columns || k == 0; k += depth_step) {
    t.depth = std::min(depth_step, a.w.columns - k);
    t.first = k == 0;
    t.bias = a.bias != nullptr && k + t.depth == a.w.columns ? a.bias + panel * 16 : nullptr;
    for (std::size_t p = 0; p < panels_count; ++p) {
      at[p] = a.w.panels + (panel + p) * a.w.panel_bytes + k / Panel::unit * Panel::unit_bytes;
      if (!expand) continue;
      for (std::size_t i = 0; i < t.depth; i += Panel::unit) {
        const std::byte* unit = at[p] + i / Panel::unit * Panel::unit_bytes;
        const auto head = Panel::open(unit);
        for (std::size_t j = 0; j < Panel::unit; ++j) store(expanded[p] + (i + j) * 16, Panel::weights(unit, head, j));
      }
      at[p] = reinterpret_cast<const std::byte*>(expanded[p]);
    }
    std::size_t row = 0;
    for (std::size_t b = 0; b < blocks; ++b) {  // blocks of nearly equal height: 7 rows are 4 + 3, not 6 + 1
      const std::size_t end = a.rows * (b + 1) / blocks;
      t.x = a.x + row * a.x_stride + k;
      t.y = a.y + row * a.y_stride + panel * 16;
      const std::size_t height = end - row;
      (expand ? tiles_of<f32_panel> : tiles_of<Panel>)[height - 1][log2_panels](t);
      row = end;
    }
    if (t.depth == 0) break;
  }
}

template<class Panel>
void gemm_panels(const gemm_args& a) {
  const auto rows = static_cast<int>(std::min<std::size_t>(a.rows, gemm_rows_max));
  const auto widest = static_cast<std::size_t>(panels_beside(rows));
  for (std::size_t panel = a.panel_begin; panel < a.panel_end;) {
    std::size_t count = widest;
    while (count > a.panel_end - panel) count /= 2;
    gemm_group<Panel>(a, panel, count, static_cast<std::size_t>(std::countr_zero(count)));
    panel += count;
  }
}

void gemm(const gemm_args& a) {
  if (a.rows == 0) return;
  switch (a.w.type) {
    case weight_type::f32:
      return gemm_panels<f32_panel>(a);
    case weight_type::f16:
      return gemm_panels<f16_panel>(a);
    case weight_type::bf16:
      return gemm_panels<bf16_panel>(a);
    case weight_type::q8_0:
      return gemm_panels<q8_0_panel>(a);
  }
}

std::size_t panel_bytes(weight_type type, std::size_t columns) {
  switch (type) {
    case weight_type::f32:
      return columns * f32_panel::unit_bytes;
    case weight_type::f16:
    case weight_type::bf16:
      return columns * f16_panel::unit_bytes;
    case weight_type::q8_0:
      return columns / q8_0_panel::unit * q8_0_panel::unit_bytes;
  }
  return 0;
}

/// Interleaves the rows of one panel: element k of lane r goes to k * 16 + r.
template<class T>
void pack_plain(const std::byte* source, std::size_t lanes, std::size_t columns, std::byte* out) {
  auto* to = reinterpret_cast<T*>(out);
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t k = 0; k < columns; ++k) {
      T element{};
      if (r < lanes) std::memcpy(&element, source + (r * columns + k) * sizeof(T), sizeof(T));
      to[k * 16 + r] = element;
    }
  }
}

void pack_q8_0(const std::byte* source, std::size_t lanes, std::size_t columns, std::byte* out) {
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t block = 0; block < columns / 32; ++block) {
      std::byte* unit = out + block * q8_0_panel::unit_bytes;
      const std::byte* from = source + (r * (columns / 32) + block) * 34;
      for (std::size_t i = 0; i < 2; ++i) unit[r * 2 + i] = r < lanes ? from[i] : std::byte{0};
      for (std::size_t i = 0; i < 32; ++i) unit[32 + i * 16 + r] = r < lanes ? from[2 + i] : std::byte{0};
    }
  }
}

void pack(weight_type type, const std::byte* source, std::size_t rows, std::size_t columns, std::size_t begin,
          std::size_t end, std::byte* out) {
  for (std::size_t panel = begin; panel < end; ++panel) {
    const std::byte* from = source + panel * 16 * row_bytes(type, columns);
    std::byte* to = out + panel * panel_bytes(type, columns);
    const std::size_t lanes = std::min<std::size_t>(16, rows - panel * 16);
    switch (type) {
      case weight_type::f32:
        pack_plain<std::uint32_t>(from, lanes, columns, to);
        break;
      case weight_type::f16:
      case weight_type::bf16:
        pack_plain<std::uint16_t>(from, lanes, columns, to);
        break;
      case weight_type::q8_0:
        pack_q8_0(from, lanes, columns, to);
        break;
    }
  }
}

template<class Panel>
void unpack_lane(const std::byte* panel, std::size_t columns, std::size_t lane, float* out) {
  for (std::size_t k = 0; k < columns; k += Panel::unit) {
    const std::byte* unit = panel + k / Panel::unit * Panel::unit_bytes;
    const auto head = Panel::open(unit);
    for (std::size_t i = 0; i < Panel::unit; ++i) {
      alignas(64) float lanes[16];
      store(lanes, Panel::weights(unit, head, i));
      out[k + i] = lanes[lane];
    }
  }
}

void unpack_row(const packed_view& w, std::size_t row, float* out) {
  const std::byte* panel = w.panels + row / 16 * w.panel_bytes;
  switch (w.type) {
    case weight_type::f32:
      return unpack_lane<f32_panel>(panel, w.columns, row % 16, out);
    case weight_type::f16:
      return unpack_lane<f16_panel>(panel, w.columns, row % 16, out);
    case weight_type::bf16:
      return unpack_lane<bf16_panel>(panel, w.columns, row % 16, out);
    case weight_type::q8_0:
      return unpack_lane<q8_0_panel>(panel, w.columns, row % 16, out);
  }
}
