#include "runtime/model/expert_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/architecture/model_shape.hpp"
#include "runtime/base/assert.hpp"

namespace redline::model {
namespace {

// Below every probability. A NaN counts as smaller than any score, and stays a NaN as a weight.
constexpr float taken = -std::numeric_limits<float>::infinity();

/// The first of the greatest scores that are not taken; the size if all are taken.
std::size_t best_of(std::span<const float> scores) {
  std::size_t best = scores.size();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] == taken) continue;
    if (best == scores.size() || scores[i] > scores[best] || (std::isnan(scores[best]) && !std::isnan(scores[i]))) {
      best = i;
    }
  }
  return best;
}

/// Keeps only the experts of the best groups.
void keep_groups(std::span<float> scores, std::uint32_t groups, std::uint32_t groups_used) {
  std::array<float, architecture::experts_max> sums;
  const std::size_t size = scores.size() / groups;
  for (std::uint32_t g = 0; g < groups; ++g) {
    const std::span<float> group = scores.subspan(g * size, size);
    const std::size_t first = best_of(group);
    const float most = std::exchange(group[first], taken);
    const std::size_t second = best_of(group);
    group[first] = most;
    sums[g] = second == size ? most : most + group[second];
  }
  const std::span<float> of_groups(sums.data(), groups);
  std::array<bool, architecture::experts_max> kept{};
  for (std::uint32_t n = 0; n < groups_used; ++n) {
    const std::size_t best = best_of(of_groups);
    kept[best] = true;
    of_groups[best] = taken;
  }
  for (std::uint32_t g = 0; g < groups; ++g) {
    if (!kept[g]) std::ranges::fill(scores.subspan(g * size, size), taken);
  }
}

}  // namespace

void choose_experts(const kernels::kernel_table& table, std::span<float> logits, const expert_weighting& weighting,
                    std::span<expert_share> chosen) {
  REDLINE_ASSERT(logits.size() <= architecture::experts_max, "a mixture has at most experts_max experts");
  const bool by_sigmoid = weighting.gates == architecture::gating::sigmoid;
  if (by_sigmoid) {
    for (float& logit : logits) {
      float both[] = {logit, 0};  // the softmax of two logits is the sigmoid of their difference
      table.softmax(both, 2);
      logit = both[0];
    }
  } else {
    table.softmax(logits.data(), logits.size());
  }
  std::array<float, architecture::experts_max> memory;
  const std::span<float> scores(memory.data(), logits.size());
  for (std::size_t e = 0; e < logits.size(); ++e) {
    scores[e] = weighting.selection_bias.empty() ? logits[e] : logits[e] + weighting.selection_bias[e];
  }
  if (weighting.groups > 1) keep_groups(scores, weighting.groups, weighting.groups_used);
  float sum = by_sigmoid ? 1e-20F : 0;  // all sigmoids may be zero
  for (expert_share& share : chosen) {
    const std::size_t best = best_of(scores);
    share = {static_cast<std::uint32_t>(best), logits[best]};
    sum += logits[best];
    scores[best] = taken;
  }
  for (expert_share& share : chosen) {
    if (weighting.normalises) share.weight /= sum;
    if (weighting.scale != 1) share.weight *= weighting.scale;
  }
}

}  // namespace redline::model
