#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_table.hpp"
#include "runtime/architecture/family.hpp"

namespace redline::model {

/// An expert that a row goes to, and the weight of its output.
struct expert_share {
  std::uint32_t expert = 0;
  float weight = 0;
};

/// How logits become probabilities, which experts are chosen by them, and how their weights are computed.
struct expert_weighting {
  architecture::gating gates = architecture::gating::softmax;
  bool normalises = false;                // the weights sum to one
  float scale = 1;                        // factor of the weights after that
  std::span<const float> selection_bias;  // one per expert, added only for the choice; may be empty
  std::uint32_t groups = 1;               // groups of consecutive experts
  std::uint32_t groups_used = 1;          // the groups whose two best experts have the greatest sum
};

/// The experts with the greatest probabilities (softmax over all experts, or sigmoids), greatest first; ties go to the
/// lower index. logits: one per expert, overwritten. chosen: no more than the experts in the used groups; all distinct,
/// even if logits are NaN.
/// Sources: Jiang et al., "Mixtral of Experts" (2024), section 2.1; Qwen3's and Mixtral's releases normalize.
/// DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 2.1.2: sigmoids, a bias for the choice, groups.
void choose_experts(const kernels::kernel_table& table, std::span<float> logits, const expert_weighting& weighting,
                    std::span<expert_share> chosen);

}  // namespace redline::model
