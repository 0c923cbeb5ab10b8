#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/architecture/model_shape.hpp"

namespace redline::architecture {

/// A tensor of a model: a row of the family's table, with a layer's number and a shape's sizes.
struct tensor {
  role is = {};
  std::string gguf;  // name in a GGUF file
  std::string hub;   // name in a Hugging Face hub folder
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;  // 0 means that it is a vector of `rows` numbers
  std::uint64_t count = 1;    // number of matrices or vectors
  bool is_counted = false;    // it has a dimension for the count, even if that is 1
  hub_form form = hub_form::same;
  std::uint8_t part = 0;
  std::uint8_t parts = 1;

  /// The dimensions in the order of GGUF files, innermost first.
  [[nodiscard]] std::vector<std::uint64_t> dimensions() const;
};

[[nodiscard]] std::uint64_t size_of(dim d, const model_shape& shape);

/// The tensors of a layer, in the order of converted files.
[[nodiscard]] std::vector<tensor> layer_tensors(const model_shape& shape, std::uint32_t layer);
/// The tensors that the model has once.
[[nodiscard]] std::vector<tensor> outer_tensors(const model_shape& shape);

/// Says as sentences which tensors a file of an unknown family has in addition to those of the nearest known ones, or
/// lacks. `names`: the tensors of the file's first layer, without "blk.0.".
[[nodiscard]] std::string describe_nearest(std::string_view family, const std::vector<std::string>& names);

}  // namespace redline::architecture
