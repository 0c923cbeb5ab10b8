#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "kernels/weight_type.hpp"
#include "kernels/worker_team.hpp"
#include "runtime/gguf/gguf_writer.hpp"

namespace redline::convert {

/// Produces a row's floats. Called on several threads at once, once per row; a row must depend only on its index.
using row_source = std::function<void(std::uint64_t row, float* out)>;

/// Rows stored in a file, `columns` weights of `type` each; `bytes` must outlive the source.
row_source stored_rows(kernels::weight_type type, const std::byte* bytes, std::uint64_t columns);

/// A payload of rows * columns weights, quantized in parallel, a few megabytes at a time. columns: a multiple of
/// block_columns(type). The team must outlive the payload.
gguf::payload_source stream_rows(kernels::worker_team& team, kernels::weight_type type, std::uint64_t rows,
                                 std::uint64_t columns, row_source source);

/// The payload of `source`; calls `done` after all of it has been taken.
gguf::payload_source followed_by(gguf::payload_source source, std::function<void()> done);

}  // namespace redline::convert
