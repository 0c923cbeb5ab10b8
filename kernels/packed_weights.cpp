#include "kernels/packed_weights.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace redline::kernels {

packed_weights::packed_weights(const kernel_table& table, weight_type type, std::size_t columns, const request& of)
    : type_(type),
      rows_(of.rows),
      columns_(columns),
      panel_bytes_(table.panel_bytes(type, columns)),
      memory_(of.place == nullptr ? panels_for(of.rows) * panel_bytes_ : 0),
      panels_(of.place == nullptr ? memory_.data() : of.place) {}

packed_weights::packed_weights(const kernel_table& table, worker_team& team, weight_type type, std::size_t rows,
                               std::size_t columns, const std::byte* source, std::byte* place) {
  const request only{rows, source, place};
  *this = std::move(pack_all(table, team, type, columns, {&only, 1}).front());
}

packed_weights packed_weights::first(std::size_t rows) const {
  packed_weights out;
  out.type_ = type_;
  out.rows_ = std::min(rows, rows_);
  out.columns_ = columns_;
  out.panel_bytes_ = panel_bytes_;
  out.panels_ = panels_;
  return out;
}

std::vector<packed_weights> packed_weights::pack_all(const kernel_table& table, worker_team& team, weight_type type,
                                                     std::size_t columns, std::span<const request> requests) {
  std::vector<packed_weights> out;
  std::vector<std::size_t> ends;  // cumulative end of each matrix's panels
  out.reserve(requests.size());
  for (const request& one : requests) {
    out.push_back(packed_weights(table, type, columns, one));
    ends.push_back((ends.empty() ? 0 : ends.back()) + panels_for(one.rows));
  }
  team.parallel_for(ends.empty() ? 0 : ends.back(), [&](std::size_t item, std::uint32_t) {
    const auto which =
        static_cast<std::size_t>(std::distance(ends.begin(), std::upper_bound(ends.begin(), ends.end(), item)));
    const std::size_t panel = item - (which == 0 ? 0 : ends[which - 1]);
    const request& one = requests[which];
    table.pack(type, one.source, one.rows, columns, panel, panel + 1, out[which].panels_);
  });
  return out;
}

}  // namespace redline::kernels
