#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "kernels/kernel_table.hpp"
#include "runtime/model/model_config.hpp"

namespace redline::model {

/// Cosines and sines by position, computed in double on first use and rounded once. Any position works, also negative
/// ones: offsets move queries to where no token is. One thread fills it; afterwards pointers may be read by many.
class rope_cache {
 public:
  /// factors: divisors of the frequencies, empty for none.
  rope_cache(const model_config& config, std::span<const float> factors);

  /// cos[rotary_dim / 2], then sin[rotary_dim / 2]; valid until `forget_if_large`.
  kernels::rope_angles at(std::int64_t position);
  /// Drops everything when very many positions were asked for. To be called between forward passes.
  void forget_if_large();

 private:
  std::vector<double> frequencies_;  // radians per position
  std::unordered_map<std::int64_t, std::unique_ptr<float[]>> blocks_;
};

}  // namespace redline::model
