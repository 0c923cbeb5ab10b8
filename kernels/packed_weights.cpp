#include "kernels/packed_weights.hpp"

namespace redline::kernels {

packed_weights::packed_weights(const kernel_table& table, worker_team& team, weight_type type, std::size_t rows,
                               std::size_t columns, const std::byte* source, std::byte* place)
    : type_(type),
      rows_(rows),
      columns_(columns),
      panel_bytes_(table.panel_bytes(type, columns)),
      memory_(place == nullptr ? panels_for(rows) * panel_bytes_ : 0),
      panels_(place == nullptr ? memory_.data() : place) {
  team.parallel_for(panels_for(rows), [&](std::size_t panel, std::uint32_t) {
    table.pack(type, source, rows, columns, panel, panel + 1, panels_);
  });
}

}  // namespace redline::kernels
