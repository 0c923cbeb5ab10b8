#include "runtime/model/expert_choice.hpp"

#include <cmath>
#include <limits>

namespace redline::model {

void choose_experts(const kernels::kernel_table& table, std::span<float> logits, const expert_weighting& weighting,
                    std::span<expert_share> chosen) {
  table.softmax(logits.data(), logits.size());
  // Below every probability. What is no number counts as less than any, and stays one as a weight.
  constexpr float taken = -std::numeric_limits<float>::infinity();
  float sum = 0;
  for (expert_share& share : chosen) {
    std::size_t best = logits.size();
    for (std::size_t e = 0; e < logits.size(); ++e) {
      if (logits[e] == taken) continue;
      if (best == logits.size() || logits[e] > logits[best] || (std::isnan(logits[best]) && !std::isnan(logits[e]))) {
        best = e;
      }
    }
    share = {static_cast<std::uint32_t>(best), logits[best]};
    sum += logits[best];
    logits[best] = taken;
  }
  for (expert_share& share : chosen) {
    if (weighting.normalises) share.weight /= sum;
    if (weighting.scale != 1) share.weight *= weighting.scale;
  }
}

}  // namespace redline::model
