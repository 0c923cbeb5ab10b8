#include "runtime/model/row_products.hpp"

#include <algorithm>

#include "kernels/int8_tables.hpp"

namespace redline::model {

/// Products of integers need weights in blocks; a file may also have other weights.
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

void row_products::for_panels(std::span<const std::size_t> panels_of_each,
                              const std::function<void(std::size_t, std::size_t, std::size_t, std::uint32_t)>& body) {
  std::size_t all = 0;
  for (const std::size_t panels : panels_of_each) all += panels;
  const std::size_t together = table_.panels_together;
  const std::size_t step = std::max(table_.panels_step, all >= 4 * together * team_.size() ? together : 1);
  units_end_.clear();
  std::size_t units = 0;
  for (const std::size_t panels : panels_of_each) units_end_.push_back(units += (panels + step - 1) / step);
  team_.parallel_stretches(
      static_cast<std::uint32_t>(units), [&](std::size_t unit, std::size_t end, std::uint32_t worker) {
        while (unit < end) {
          const auto which = static_cast<std::size_t>(std::ranges::upper_bound(units_end_, unit) - units_end_.begin());
          const std::size_t first = which == 0 ? 0 : units_end_[which - 1];
          const std::size_t stop = std::min(end, units_end_[which]);
          body(which, (unit - first) * step, std::min(panels_of_each[which], (stop - first) * step), worker);
          unit = stop;
        }
      });
}

void row_products::multiply(const float* x, std::size_t rows, std::initializer_list<product> products) {
  input_rows input{.x = x, .count = rows, .columns = products.begin()->w.columns()};
  if (std::ranges::any_of(products, [this](const product& p) { return takes_prepared(p.w); })) prepare({&input, 1});
  panels_.clear();
  for (const product& p : products) panels_.push_back(kernels::panels_for(p.w.rows()));
  for_panels(panels_, [&](std::size_t which, std::size_t begin, std::size_t end, std::uint32_t) {
    const product& p = products.begin()[which];
    multiply(p.w, input, begin, end, p.y, p.bias);
  });
}

void row_products::find_best(const float* x, std::size_t rows, const kernels::packed_weights& w,
                             std::span<kernels::row_best> best) {
  constexpr std::size_t panels_together = 32;  // their outputs stay in a cache
  constexpr std::size_t outputs_together = panels_together * kernels::panel_rows;
  input_rows input{.x = x, .count = rows, .columns = w.columns()};
  if (takes_prepared(w)) prepare({&input, 1});
  best_.assign(rows * team_.size(), {});
  outputs_.grow(rows * outputs_together * team_.size());
  const auto find_in = [&](std::size_t begin, std::size_t end, std::uint32_t worker) {
    const std::size_t first = begin * kernels::panel_rows;
    kernels::packed_view some = w.view();
    some.panels += begin * some.panel_bytes;
    some.rows = std::min(w.rows(), end * kernels::panel_rows) - first;
    float* y = outputs_.data() + worker * rows * outputs_together;
    table_.gemm({.w = some,
                 .panel_begin = 0,
                 .panel_end = end - begin,
                 .x = input.x,
                 .x_stride = input.row_stride(),
                 .rows = rows,
                 .y = y,
                 .y_stride = outputs_together,
                 .prepared = input.prepared});
    for (std::size_t row = 0; row < rows; ++row) {
      kernels::row_best here = table_.best_of_row(y + row * outputs_together, some.rows);
      here.index += static_cast<std::uint32_t>(first);
      best_[worker * rows + row].join(here);
    }
  };
  const std::size_t panels[] = {kernels::panels_for(w.rows())};
  for_panels(panels, [&](std::size_t, std::size_t begin, std::size_t end, std::uint32_t worker) {
    for (; begin < end; begin += panels_together) find_in(begin, std::min(end, begin + panels_together), worker);
  });
  for (std::size_t row = 0; row < rows; ++row) {
    best[row] = {};
    for (std::size_t worker = 0; worker < team_.size(); ++worker) best[row].join(best_[worker * rows + row]);
  }
}

}  // namespace redline::model
