#include "runtime/model/row_products.hpp"

#include <algorithm>
#include <bit>

#include "kernels/int8_tables.hpp"

namespace redline::model {

/// Products of integers are for weights in blocks; a file may have others beside them.
bool row_products::takes_prepared(const kernels::packed_weights& matrix) const {
  return !kernels::multiplies_integers(table_) || kernels::block_columns(matrix.view().type) > 1;
}

void row_products::prepare(std::span<input_rows> groups) {
  to_prepare_.clear();
  std::size_t bytes = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::size_t own = table_.prepared_bytes(groups[g].count, groups[g].columns);
    groups[g].prepared = nullptr;
    if (own == 0) continue;
    bytes += kernels::round_up(own, 64);
    for (std::size_t begin = 0; begin < groups[g].count; begin += rows_per_item) {
      to_prepare_.push_back({g, begin, std::min(groups[g].count, begin + rows_per_item)});
    }
  }
  prepared_.grow((bytes + sizeof(float) - 1) / sizeof(float));
  auto* place = reinterpret_cast<std::byte*>(prepared_.data());
  for (input_rows& group : groups) {
    const std::size_t own = table_.prepared_bytes(group.count, group.columns);
    if (own == 0) continue;
    group.prepared = place;
    place += kernels::round_up(own, 64);
  }
  team_.parallel_for(to_prepare_.size(), [&](std::size_t item, std::uint32_t) {
    const stretch& s = to_prepare_[item];
    const input_rows& group = groups[s.group];
    table_.prepare_rows(group.x, group.row_stride(), s.begin, s.end, group.columns,
                        const_cast<std::byte*>(group.prepared));
  });
}

void row_products::multiply(const kernels::packed_weights& w, const input_rows& rows, std::size_t panel_begin,
                            std::size_t panel_end, float* y, const float* bias, std::size_t y_stride) const {
  table_.gemm({.w = w.view(),
               .panel_begin = panel_begin,
               .panel_end = panel_end,
               .x = rows.x,
               .x_stride = rows.row_stride(),
               .rows = rows.count,
               .y = y,
               .y_stride = y_stride == 0 ? w.rows() : y_stride,
               .bias = bias,
               .prepared = rows.prepared});
}

/// A few items per thread, so that a slow thread does not hold up the others.
std::size_t row_products::panels_per_item(std::size_t panels) const {
  const std::size_t items = std::size_t{team_.size()} * 4;
  const std::size_t share = std::bit_floor(std::max<std::size_t>(1, panels / items));
  return std::max(std::min<std::size_t>(share, 64), table_.panels_step);
}

void row_products::for_panels(std::span<const std::size_t> panels_of_each,
                              const std::function<void(std::size_t, std::size_t, std::size_t)>& body) {
  std::size_t all = 0;
  for (const std::size_t panels : panels_of_each) all += panels;
  const std::size_t step = panels_per_item(all);
  items_end_.clear();
  std::size_t items = 0;
  for (const std::size_t panels : panels_of_each) items_end_.push_back(items += (panels + step - 1) / step);
  team_.parallel_for(items, [&](std::size_t item, std::uint32_t) {
    const auto which = static_cast<std::size_t>(std::ranges::upper_bound(items_end_, item) - items_end_.begin());
    const std::size_t begin = (item - (which == 0 ? 0 : items_end_[which - 1])) * step;
    body(which, begin, std::min(panels_of_each[which], begin + step));
  });
}

void row_products::multiply(const float* x, std::size_t rows, std::initializer_list<product> products) {
  input_rows input{.x = x, .count = rows, .columns = products.begin()->w.columns()};
  if (std::ranges::any_of(products, [this](const product& p) { return takes_prepared(p.w); })) prepare({&input, 1});
  panels_.clear();
  for (const product& p : products) panels_.push_back(kernels::panels_for(p.w.rows()));
  for_panels(panels_, [&](std::size_t which, std::size_t begin, std::size_t end) {
    const product& p = products.begin()[which];
    multiply(p.w, input, begin, end, p.y, p.bias);
  });
}

}  // namespace redline::model
