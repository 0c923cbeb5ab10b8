#include "kernels/packed_weights.hpp"

namespace redline::kernels {

packed_weights::packed_weights(const kernel_table& table, worker_team& team, weight_type type, std::size_t rows,
                               std::size_t columns, const std::byte* source)
    : type_(type),
      rows_(rows),
      columns_(columns),
      panel_bytes_(table.panel_bytes(type, columns)),
      memory_(panels_for(rows) * panel_bytes_) {
  team.parallel_for(panels_for(rows), [&](std::size_t panel, std::uint32_t) {
    table.pack(type, source, rows, columns, panel, panel + 1, memory_.data());
  });
}

}  // namespace redline::kernels
