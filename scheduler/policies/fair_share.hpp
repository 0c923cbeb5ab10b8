#pragma once

#include <unordered_map>

#include "scheduler/policy.hpp"

namespace redline::scheduler {

/// The tenant that has used the least measured forward time goes first; within a tenant, fifo. A tenant that was away
/// for longer than between two rounds comes back level with the least of those who stayed: absence earns no credit.
class fair_share final : public policy {
 public:
  void rank(std::span<const work_item> items, instant now, std::vector<item_index>& best_first) const override;
  void charge(tenant_id tenant, microseconds used) override;

 private:
  struct account {
    std::int64_t used_us = 0;
    instant seen;
  };
  mutable std::unordered_map<tenant_id, account> accounts_;  // of tenants that have work, or had just now
};

}  // namespace redline::scheduler
