#include "runtime/convert/row_stream.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/weight_blocks.hpp"

namespace redline::convert {
namespace {

constexpr std::uint64_t piece_bytes = 4U << 20;    // in memory at once, quantized
constexpr std::uint64_t item_weights = 16U << 10;  // per item of the parallel loop: a few hundred microseconds

}  // namespace

row_source stored_rows(kernels::weight_type type, const std::byte* bytes, std::uint64_t columns) {
  return [=, row_size = kernels::row_bytes(type, columns)](std::uint64_t row, float* out) {
    kernels::dequantize_row(type, bytes + row * row_size, columns, out);
  };
}

gguf::payload_source stream_rows(kernels::worker_team& team, kernels::weight_type type, std::uint64_t rows,
                                 std::uint64_t columns, row_source source) {
  return [&team, type, rows, columns, source = std::move(source)](const gguf::payload_sink& put) -> result<void> {
    const std::size_t row_size = kernels::row_bytes(type, columns);
    const std::uint64_t rows_per_piece = std::clamp<std::uint64_t>(piece_bytes / row_size, 1, rows);
    const std::uint64_t rows_per_item = std::max<std::uint64_t>(item_weights / columns, 1);
    std::vector<std::byte> piece(rows_per_piece * row_size);
    std::vector<std::vector<float>> floats(team.size(), std::vector<float>(columns));
    for (std::uint64_t first = 0; first < rows; first += rows_per_piece) {
      const std::uint64_t count = std::min(rows_per_piece, rows - first);
      team.parallel_for((count + rows_per_item - 1) / rows_per_item, [&](std::size_t item, std::uint32_t worker) {
        float* const x = floats[worker].data();
        for (std::uint64_t i = item * rows_per_item; i < std::min(count, (item + 1) * rows_per_item); ++i) {
          source(first + i, x);
          kernels::quantize_row(type, x, columns, piece.data() + i * row_size);
        }
      });
      REDLINE_TRY(put(std::span(piece).first(count * row_size)));
    }
    return {};
  };
}

gguf::payload_source followed_by(gguf::payload_source source, std::function<void()> done) {
  return [source = std::move(source), done = std::move(done)](const gguf::payload_sink& put) -> result<void> {
    REDLINE_TRY(source(put));
    done();
    return {};
  };
}

}  // namespace redline::convert
