#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/worker_team.hpp"
#include "runtime/base/result.hpp"
#include "runtime/convert/output_type.hpp"

namespace redline::convert {

/// Converts the model in a Hugging Face folder (runtime/huggingface defines the supported ones) to a GGUF file at
/// `path`. Matrices get the type that `type_for` returns and vectors f32; names and row order are those that Redline
/// and other readers expect. Tensors may be F32, F16 or BF16. Every tensor must belong to the model and have the shape
/// that config.json implies, and none may be missing: whatever is left out could change the results. Rows are streamed
/// from the mapped files, a few megabytes at a time. progress(done, all) reports written payload bytes. Of a vision
/// model only the text part is converted; returns how many tensors were left out.
result<std::size_t> convert_folder(const std::string& folder, const output_type& type, const std::string& path,
                                   kernels::worker_team& team,
                                   const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace redline::convert
