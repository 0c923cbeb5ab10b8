#pragma once

#include <span>

#include "runtime/sampling/sampling.hpp"

namespace redline::test {

/// Samples one row: the token after `before` and then `accepted`, which counts as output.
inline token sample(std::span<const float> logits, const sampling::sampling_params& params,
                    const sampling::token_context& before, std::span<const token> accepted = {}) {
  sampling::row_sampler row(params, before);
  for (const token t : accepted) row.emit(t);
  return row.choose(logits);
}

}  // namespace redline::test
