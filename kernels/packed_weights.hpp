#pragma once

#include <span>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "kernels/machine/memory.hpp"
#include "kernels/worker_team.hpp"

namespace redline::kernels {

/// A weight matrix repacked once for one table's inner loops. Only that table can read the layout.
class packed_weights {
 public:
  packed_weights() = default;
  /// source: [rows, columns] in the file's layout (row_bytes each); not needed afterwards. place: size_bytes() of the
  /// caller's memory, 64-byte aligned, which must outlive this; without it the matrix allocates its own memory. Throws
  /// std::bad_alloc.
  packed_weights(const kernel_table& table, worker_team& team, weight_type type, std::size_t rows, std::size_t columns,
                 const std::byte* source, std::byte* place = nullptr);

  /// See the constructor's arguments.
  struct request {
    std::size_t rows = 0;
    const std::byte* source = nullptr;
    std::byte* place = nullptr;
  };
  /// Packs several matrices with the same columns at once: the threads share all their panels, because one expert of
  /// hundreds has too few for many threads. Throws std::bad_alloc.
  static std::vector<packed_weights> pack_all(const kernel_table& table, worker_team& team, weight_type type,
                                              std::size_t columns, std::span<const request> requests);

  /// The first rows of this matrix, which owns their memory.
  [[nodiscard]] packed_weights first(std::size_t rows) const;

  [[nodiscard]] packed_view view() const { return {type_, rows_, columns_, panel_bytes_, panels_}; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t size_bytes() const { return panels_for(rows_) * panel_bytes_; }

 private:
  packed_weights(const kernel_table& table, weight_type type, std::size_t columns, const request& of);

  weight_type type_ = weight_type::f32;
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::size_t panel_bytes_ = 0;
  memory_block memory_;  // empty if the caller owns the memory
  std::byte* panels_ = nullptr;
};

}  // namespace redline::kernels
