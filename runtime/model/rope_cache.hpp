#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "runtime/architecture/shape_keys.hpp"

namespace redline::model {

using architecture::model_shape;

/// Cosines and sines by position, computed in double on first use and rounded once. Positions may be negative, because
/// offsets move queries. One thread may call `at`; the returned angles may be read by many.
class rope_cache {
 public:
  /// factors: divisors of the frequencies; may be empty.
  rope_cache(const model_shape& config, std::span<const float> factors);

  /// cos[rotary_dim / 2], then sin[rotary_dim / 2], for a query or key at the position; valid until `forget_if_large`.
  kernels::rope_angles at(std::int64_t position);
  /// Angles that turn a rotated key by a number of positions and keep its length; valid until `forget_if_large`.
  kernels::rope_angles turn(std::int64_t positions);
  /// Drops all angles if there are very many. Call it between forward passes.
  void forget_if_large();

 private:
  using block_map = std::unordered_map<std::int64_t, std::unique_ptr<float[]>>;
  kernels::rope_angles find(block_map& blocks, std::int64_t position, double magnitude) const;

  std::vector<double> frequencies_;  // radians per position
  double magnitude_ = 1;
  block_map blocks_;
  block_map turns_;  // used if magnitude_ is not 1
};

}  // namespace redline::model
