#pragma once

#include "scheduler/policy.hpp"

namespace redline::scheduler {

/// Decodes and verifications before prompts, so that an arriving prompt does not hold up running answers; then by
/// arrival. Decodes that found no room in the last passes go before the others.
class fifo final : public policy {
 public:
  void rank(std::span<const work_item> items, instant now, std::vector<item_index>& best_first) const override;
};

/// The order of fifo between two items, for policies that refine it.
bool fifo_before(const work_item& a, const work_item& b);

}  // namespace redline::scheduler
