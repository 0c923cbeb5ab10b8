#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/worker_team.hpp"
#include "runtime/base/result.hpp"
#include "runtime/convert/output_type.hpp"

namespace redline::convert {

/// Writes the model in a Hugging Face folder (runtime/huggingface says which are taken) as a GGUF file
/// at `path`: matrices in the type that `type_for` gives them, vectors in f32, names and the order of rows as Redline
/// and others read them. Tensors may be F32, F16 or BF16. Every tensor must have a place in the model and the shape
/// that config.json makes, and every place a tensor: what would be left out could have changed the result. Rows are
/// streamed from the mapped files, a few megabytes at a time. progress(done, all): bytes written of the payload. Of a
/// model that sees as well only the part that reads and writes text is taken; says how many tensors were not.
result<std::size_t> convert_folder(const std::string& folder, const output_type& type, const std::string& path,
                                   kernels::worker_team& team,
                                   const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace redline::convert
