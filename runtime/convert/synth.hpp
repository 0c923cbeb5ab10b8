#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/worker_team.hpp"
#include "runtime/architecture/model_shape.hpp"
#include "runtime/base/result.hpp"
#include "runtime/convert/output_type.hpp"
#include "runtime/gguf/gguf_file.hpp"

namespace redline::convert {

/// A decoder shape with a name.
struct synth_shape : architecture::model_shape {
  std::string_view shape_name;

  /// Changes the number of layers; their kinds repeat.
  void set_layers(std::uint32_t count);
};

/// A shape by its name, such as "qwen2-0.5b"; the failure lists the names.
result<synth_shape> find_shape(std::string_view name);
std::string shape_names();

struct synth_options {
  synth_shape shape;
  output_type type;
  std::uint64_t seed = 1;
  /// The file that provides the tokenizer; nullptr for a byte-level one of a few hundred tokens. Either is padded with
  /// unused tokens to the shape's vocabulary.
  const gguf::gguf_file* tokenizer = nullptr;
};

/// Writes a model of random weights: every row depends only on (seed, tensor, row), so the file is the same on every
/// machine and with any number of threads. Weights are scaled so that activations keep their size from layer to layer,
/// attention is neither flat nor one-hot, and one token's logit stands out.
result<void> write_synthetic(const synth_options& options, const std::string& path, kernels::worker_team& team,
                             const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace redline::convert
