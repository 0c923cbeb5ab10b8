#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_table.hpp"

namespace redline::model {

/// An expert that a row goes to, and by how much what it says counts.
struct expert_share {
  std::uint32_t expert = 0;
  float weight = 0;
};

/// What becomes of the probabilities of the experts that are chosen.
struct expert_weighting {
  bool normalises = false;  // they sum to one
  float scale = 1;          // and are then multiplied with it
};

/// The experts with the greatest probabilities (softmax over all experts), greatest first; of equal ones the first.
/// logits: one per expert, overwritten. chosen: no more than there are
/// experts; one of each, also where logits are not numbers.
/// Source: Jiang et al., "Mixtral of Experts" (2024), section 2.1; Qwen3's and Mixtral's releases normalise.
void choose_experts(const kernels::kernel_table& table, std::span<float> logits, const expert_weighting& weighting,
                    std::span<expert_share> chosen);

}  // namespace redline::model
