#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/worker_team.hpp"
#include "runtime/base/result.hpp"
#include "runtime/convert/output_type.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::convert {

/// Writes `from` again at `path` with other weights: metadata as it is but for general.file_type and
/// general.quantization_version, every matrix in the type that `type_for` gives it, every vector in f32, tensors in the
/// order they had. A matrix that has its type already is copied byte for byte, so nothing is lost by asking again. Any
/// of kernels::all_weight_types may be read; another type is refused by the tensor's name. Streams: beside the header
/// and mapped pages, which the system may take back, some megabytes are held. `path` must be another file than `from`.
/// progress(done, all): bytes written of the payload.
result<void> quantize(const gguf::gguf_file& from, const output_type& type, const std::string& path,
                      kernels::worker_team& team,
                      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace redline::convert
