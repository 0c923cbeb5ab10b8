#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_table.hpp"
#include "runtime/architecture/family.hpp"

namespace redline::model {

/// An expert that a row goes to, and by how much what it says counts.
struct expert_share {
  std::uint32_t expert = 0;
  float weight = 0;
};

/// How logits become probabilities, which experts are chosen by them, and what becomes of those that are.
struct expert_weighting {
  architecture::gating gates = architecture::gating::softmax;
  bool normalises = false;                // the weights sum to one
  float scale = 1;                        // and are then multiplied with it
  std::span<const float> selection_bias;  // one per expert, added for the choice alone; empty: none
  std::uint32_t groups = 1;               // of experts one after the other
  std::uint32_t groups_used = 1;          // those whose two best experts have the greatest sum
};

/// The experts with the greatest probabilities (softmax over all experts, or sigmoids), greatest first; of equal ones
/// the first. logits: one per expert, overwritten. chosen: no more than there are experts in the groups that are used;
/// one of each, also where logits are not numbers.
/// Sources: Jiang et al., "Mixtral of Experts" (2024), section 2.1; Qwen3's and Mixtral's releases normalise.
/// DeepSeek-AI, "DeepSeek-V3 Technical Report" (2024), section 2.1.2: sigmoids, a bias for the choice, groups.
void choose_experts(const kernels::kernel_table& table, std::span<float> logits, const expert_weighting& weighting,
                    std::span<expert_share> chosen);

}  // namespace redline::model
