#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::model {

/// Time of a pass with one run of `rows` rows, `logits` of them with logits, after `context` tokens of the sequence.
struct measured_pass {
  std::uint32_t rows = 0;
  std::uint32_t logits = 0;
  std::uint32_t context = 0;
  microseconds took{0};
  std::uint64_t experts = 0;  // distinct experts that were touched, over all layers; 0 in a dense model
};

/// Measures passes of 1, 2, 4, ... rows, some without logits, some after a long context: enough to estimate any other.
/// For a mixture of experts it also measures passes of one repeated token, which touch few experts. Stops early after
/// about `patience`. Overwrites the contents of the transformer's pages.
std::vector<measured_pass> measure_passes(transformer& t, microseconds patience);

}  // namespace redline::model
