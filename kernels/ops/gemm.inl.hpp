// Rows times packed weights. Every output is one chain of fused multiply-adds over k = 0 .. columns - 1, starting at
// zero, followed by the bias: its bits depend only on its row of x and its row of w. Blocking over rows, panels and k
// only decides when a link of the chain is computed; a float stored in y between two links is unchanged.

// Panels whose 16 numbers per k-step are read as stored.

struct f32_panel {
  static constexpr std::size_t step_bytes = 64;
  static f32x16 weights(const std::byte* at) { return load(reinterpret_cast<const float*>(at)); }
};

struct f16_panel {
  static constexpr std::size_t step_bytes = 32;
  static f32x16 weights(const std::byte* at) { return load_f16(reinterpret_cast<const std::uint16_t*>(at)); }
};

struct bf16_panel {
  static constexpr std::size_t step_bytes = 32;
  static f32x16 weights(const std::byte* at) { return load_bf16(reinterpret_cast<const std::uint16_t*>(at)); }
};

/// Continues Rows x Panels chains over `depth` k-steps. panels: where each panel's first step is. step_bytes: the
/// distance between steps of a panel.
template<class Panel, int Rows, int Panels>
inline void continue_chains(const std::byte* const* panels, std::size_t step_bytes, const float* x,
                            std::size_t x_stride, std::size_t depth, f32x16 (&acc)[Rows][Panels]) {
  const std::byte* at[Panels];
#pragma GCC unroll 8
  for (int p = 0; p < Panels; ++p) at[p] = panels[p];
  for (std::size_t k = 0; k < depth; ++k) {
    f32x16 w[Panels];
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) {
      w[p] = Panel::weights(at[p]);
      at[p] += step_bytes;
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const f32x16 xk = broadcast(x[r * x_stride + k]);
#pragma GCC unroll 8
      for (int p = 0; p < Panels; ++p) acc[r][p] = fma(xk, w[p], acc[r][p]);
    }
  }
}

/// One block of outputs over one segment of k.
struct gemm_tile {
  const std::byte* const* panels;  // at the first k of the segment
  const float* x;                  // at the first k of the segment
  std::size_t x_stride;
  std::size_t depth;
  std::size_t step_bytes;  // distance between k-steps
  float* y;
  std::size_t y_stride;
  std::size_t lanes;            // number of outputs that exist, of Panels * 16
  bool first;                   // chains begin here; otherwise they continue from y
  const float* bias = nullptr;  // for this block; given with the last segment
};

/// For tiles whose lanes all exist.
template<class Panel, int Rows, int Panels>
inline void run_whole_tile(const gemm_tile& t) {
  f32x16 acc[Rows][Panels];
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < Panels; ++p) acc[r][p] = t.first ? zero() : load(t.y + r * t.y_stride + p * 16);
  }
  continue_chains<Panel, Rows, Panels>(t.panels, t.step_bytes, t.x, t.x_stride, t.depth, acc);
#pragma GCC unroll 8
  for (int p = 0; p < Panels; ++p) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      if (t.bias != nullptr) acc[r][p] = add(acc[r][p], load(t.bias + p * 16));
      store(t.y + r * t.y_stride + p * 16, acc[r][p]);
    }
  }
}

template<class Panel, int Rows, int Panels>
void run_tile(const gemm_tile& t) {
  constexpr std::size_t width = Panels * 16;
  if (t.lanes == width) return run_whole_tile<Panel, Rows, Panels>(t);
  alignas(64) float y[Rows * width] = {};
  alignas(64) float bias[width] = {};
  gemm_tile whole = t;
  whole.y = y;
  whole.y_stride = width;
  if (!t.first) {
    for (int r = 0; r < Rows; ++r) std::copy_n(t.y + r * t.y_stride, t.lanes, y + r * width);
  }
  if (t.bias != nullptr) {
    std::copy_n(t.bias, t.lanes, bias);
    whole.bias = bias;
  }
  run_whole_tile<Panel, Rows, Panels>(whole);
  for (int r = 0; r < Rows; ++r) std::copy_n(y + r * width, t.lanes, t.y + r * t.y_stride);
}

using tile_function = void (*)(const gemm_tile&);

/// The greatest power of two of panels for which the accumulators suffice with `rows` rows.
constexpr int panels_beside(int rows) {
  int panels = 8;
  while (panels > 1 && panels * rows > gemm_accumulators) panels /= 2;
  return panels;
}

template<int Rows, int Panels>
constexpr tile_function tile_or_null() {
  if constexpr (Panels <= panels_beside(Rows)) {
    return run_tile<f32_panel, Rows, Panels>;
  } else {
    return nullptr;
  }
}

/// Indexed as [rows - 1][log2(panels)].
template<int... Rows>
constexpr auto tile_table(std::integer_sequence<int, Rows...>) {
  return std::array<std::array<tile_function, 4>, sizeof...(Rows)>{
      {{tile_or_null<Rows + 1, 1>(), tile_or_null<Rows + 1, 2>(), tile_or_null<Rows + 1, 4>(),
        tile_or_null<Rows + 1, 8>()}...}};
}
inline constexpr auto tiles_by_size = tile_table(std::make_integer_sequence<int, gemm_rows_max>{});

/// The number of weights expanded at once. For a few rows they stay in the first-level cache together with the rows of
/// x. Many rows need long segments, which stay in the second level; otherwise they would load and store their sums too
/// often.
inline constexpr std::size_t stretch_floats_few = 4096;
inline constexpr std::size_t stretch_floats = 16384;

/// Multiplies one group of panels (8, 4, 2 or 1) by all rows, segment by segment of k.
void gemm_group(const gemm_args& a, expand_function expand, std::size_t panel, std::size_t panels_count) {
  const bool few = a.rows <= 2 * gemm_rows_max;
  const std::size_t depth_step = (few ? stretch_floats_few : stretch_floats) / (panels_count * 16);
  const std::size_t blocks = (a.rows + gemm_rows_max - 1) / gemm_rows_max;
  const auto log2_panels = static_cast<std::size_t>(std::countr_zero(panels_count));
  alignas(64) float expanded[stretch_floats];
  const std::byte* at[8];
  gemm_tile t{.panels = at,
              .x_stride = a.x_stride,
              .step_bytes = f32_panel::step_bytes,
              .y_stride = a.y_stride,
              .lanes = std::min(panels_count * 16, a.w.rows - panel * 16)};
  for (std::size_t k = 0; k < a.w.columns || k == 0; k += depth_step) {
    t.depth = std::min(depth_step, a.w.columns - k);
    t.first = k == 0;
    t.bias = a.bias != nullptr && k + t.depth == a.w.columns ? a.bias + panel * 16 : nullptr;
    for (std::size_t p = 0; p < panels_count; ++p) {
      const std::byte* from = a.w.panels + (panel + p) * a.w.panel_bytes;
      if (expand == nullptr) {
        at[p] = from + k * f32_panel::step_bytes;
        continue;
      }
      float* to = expanded + p * depth_step * 16;
      expand(from, k, t.depth, to);
      at[p] = reinterpret_cast<const std::byte*>(to);
    }
    std::size_t row = 0;
    for (std::size_t b = 0; b < blocks; ++b) {  // blocks of nearly equal height: 7 rows become 4 + 3, not 6 + 1
      const std::size_t end = a.rows * (b + 1) / blocks;
      t.x = a.x + row * a.x_stride + k;
      t.y = a.y + row * a.y_stride + panel * 16;
      tiles_by_size[end - row - 1][log2_panels](t);
      row = end;
    }
    if (t.depth == 0) break;
  }
}

/// Sixteen columns of plain numbers at a time.
template<class Panel>
struct plain_group {
  static constexpr int group = 16;
  static constexpr std::size_t group_bytes = group * Panel::step_bytes;
  using head = const std::byte*;
  static head open(const std::byte* panel, std::size_t g) { return panel + g * group_bytes; }
  template<int I>
  static f32x16 weight(head h) {
    return Panel::weights(h + I * Panel::step_bytes);
  }
};

/// Multiplies one row: weights go directly from packed form into the chains, with several panels together to hide
/// latency. Plain: the reader for columns that do not form a whole group.
template<class Format, int Panels, class Plain = void>
void run_fused(const gemm_args& a, std::size_t panel) {
  const std::byte* from[Panels];
  f32x16 acc[Panels];
  for_constants<Panels>([&](auto p) {
    from[p] = a.w.panels + (panel + p) * a.w.panel_bytes;
    acc[p] = zero();
  });
  const std::size_t groups = a.w.columns / Format::group;
  for (std::size_t g = 0; g < groups; ++g) {
    typename Format::head head[Panels];
    for_constants<Panels>([&](auto p) {
      head[p] = Format::open(from[p], g);
      prefetch_weights(from[p] + g * Format::group_bytes, Format::group_bytes);
    });
    const float* x = a.x + g * Format::group;
    for_constants<Format::group>([&](auto c) {
      const f32x16 xk = broadcast(x[c]);
      for_constants<Panels>([&](auto p) { acc[p] = fma(xk, Format::template weight<c>(head[p]), acc[p]); });
    });
  }
  if constexpr (!std::is_void_v<Plain>) {
    for (std::size_t k = groups * Format::group; k < a.w.columns; ++k) {
      const f32x16 xk = broadcast(a.x[k]);
      for_constants<Panels>([&](auto p) { acc[p] = fma(xk, Plain::weights(from[p] + k * Plain::step_bytes), acc[p]); });
    }
  }
  for_constants<Panels>([&](auto p) {
    const std::size_t first = (panel + p) * 16;
    const std::size_t lanes = std::min<std::size_t>(16, a.w.rows - first);
    if (a.bias != nullptr) acc[p] = add(acc[p], load_some(a.bias + first, lanes));
    store_some(a.y + first, acc[p], lanes);
  });
}

template<class Format, class Plain = void>
void gemm_one_row(const gemm_args& a) {
  std::size_t panel = a.panel_begin;
  for (; panel + fused_panels <= a.panel_end; panel += fused_panels) run_fused<Format, fused_panels, Plain>(a, panel);
  for (; panel < a.panel_end; ++panel) run_fused<Format, 1, Plain>(a, panel);
}
template<class Panel>
void gemm_one_plain_row(const gemm_args& a) {
  gemm_one_row<plain_group<Panel>, Panel>(a);
}

void gemm(const gemm_args& a) {
  if (a.rows == 0) return;
  if (a.rows == 1) {
    switch (a.w.type) {
      case weight_type::f32:
        return gemm_one_plain_row<f32_panel>(a);
      case weight_type::f16:
        return gemm_one_plain_row<f16_panel>(a);
      case weight_type::bf16:
        return gemm_one_plain_row<bf16_panel>(a);
      default:
        return with_format(a.w.type, [&]<class Format>() { gemm_one_row<Format>(a); });
    }
  }
  const expand_function expand = a.w.type == weight_type::f32 ? nullptr : expander_of(a.w.type);
  const auto rows = static_cast<int>(std::min<std::size_t>(a.rows, gemm_rows_max));
  const auto widest = static_cast<std::size_t>(panels_beside(rows));
  for (std::size_t panel = a.panel_begin; panel < a.panel_end;) {
    std::size_t count = widest;
    while (count > a.panel_end - panel) count /= 2;
    gemm_group(a, expand, panel, count);
    panel += count;
  }
}

void unpack_row(const packed_view& w, std::size_t row, float* out) {
  const std::byte* panel = w.panels + row / 16 * w.panel_bytes;
  const expand_function expand = expander_of(w.type);
  constexpr std::size_t depth_step = stretch_floats_few / 16;
  alignas(64) float lanes[stretch_floats_few];
  for (std::size_t k = 0; k < w.columns; k += depth_step) {
    const std::size_t depth = std::min(depth_step, w.columns - k);
    expand(panel, k, depth, lanes);
    for (std::size_t i = 0; i < depth; ++i) out[k + i] = lanes[i * 16 + row % 16];
  }
}
