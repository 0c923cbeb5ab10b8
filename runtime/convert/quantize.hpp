#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/worker_team.hpp"
#include "runtime/base/result.hpp"
#include "runtime/convert/output_type.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::convert {

/// Rewrites `from` at `path` with other weights. Metadata stays, except for general.file_type and
/// general.quantization_version; every matrix gets the type that `type_for` returns, every vector f32, and tensors keep
/// their order. A matrix that already has its type is copied byte for byte, so that repeating the call loses nothing.
/// All of kernels::all_weight_types can be read; another type is refused with the tensor's name. It streams: in
/// addition to the header and mapped pages, which the system may reclaim, it uses a few megabytes. `path` must not name
/// the file `from`. progress(done, all) reports written payload bytes.
result<void> quantize(const gguf::gguf_file& from, const output_type& type, const std::string& path,
                      kernels::worker_team& team,
                      const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace redline::convert
