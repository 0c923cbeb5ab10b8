// Integer products if a target multiplies two rows by eight columns at once. Integer sums are exact in any order, so
// the outputs are those of gemm_int8.inl.hpp. An odd row is paired with itself.

template<class Format, int Rows>
void add_dot_chains_by_pairs(const dot_tile& t, f32x16 (&acc)[Rows][1]) {
  static_assert(Format::steps % 2 == 0);
  constexpr int pairs = (Rows + 1) / 2;
  const auto row_offset = [&](int r) { return static_cast<std::size_t>(std::min(r, Rows - 1)) * t.row_bytes; };
  read_ahead<Format, 1> ahead(t);
  for (std::size_t g = 0; g < t.groups; ++g) {
    const auto head = Format::open(t.panel, g);
    ahead.next(g);
    const std::byte* q = t.q + g * Format::group;
    const auto* blocks = reinterpret_cast<const std::byte*>(t.blocks + g * Format::group / x_block_columns);
    const auto block_of = [&](int r) { return reinterpret_cast<const x_block*>(blocks + row_offset(r)); };
    const auto minus_of = [&](int r) {
      return Format::group == x_block_columns ? block_of(r)->minus : block_of(r)->minus_half[g % 2];
    };
    pair_dots sums[pairs];
#pragma GCC unroll 4
    for (int i = 0; i < pairs; ++i) {
      sums[i] = begin_pair_dots(Format::offset * minus_of(2 * i), Format::offset * minus_of(2 * i + 1));
    }
    for_constants<Format::steps / 2>([&](auto i) {
      const auto w = ready_for_pairs(Format::template bytes<2 * i>(head), Format::template bytes<2 * i + 1>(head));
#pragma GCC unroll 4
      for (int j = 0; j < pairs; ++j) {
        add_pair_dots(sums[j], w, q + row_offset(2 * j) + i * 8, q + row_offset(2 * j + 1) + i * 8);
      }
    });
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const x_block* b = block_of(r);
      acc[r][0] = fma(mul(head.scale, broadcast(b->d)), row_of_pair(sums[r / 2], r % 2), acc[r][0]);
      if constexpr (Format::has_minimum)
        acc[r][0] = fma(head.minimum, broadcast(sum_of_group<Format::group>(*b, g)), acc[r][0]);
    }
  }
}
