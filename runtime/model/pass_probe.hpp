#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::model {

/// What one run of `rows` rows, of which `logits` want logits, takes behind `context` other tokens.
struct measured_pass {
  std::uint32_t rows = 0;
  std::uint32_t logits = 0;
  std::uint32_t context = 0;
  microseconds took{0};
};

/// Measures passes of 1, 2, 4, ... rows, some without logits, and some behind a long context: enough to foresee others.
/// Stops early when it took more than `patience`. What the transformer's pages hold is lost.
std::vector<measured_pass> measure_passes(transformer& t, std::uint32_t pages_count, microseconds patience);

}  // namespace redline::model
