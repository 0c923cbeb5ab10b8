#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"
#include "scheduler/work_item.hpp"

namespace redline::scheduler {

/// Ranks what could run next. A policy only orders: it cannot allocate, send, sleep or look at a clock.
class policy {
 public:
  virtual ~policy() = default;
  /// Fills `best_first` with every index of `items` once.
  virtual void rank(std::span<const work_item> items, instant now, std::vector<item_index>& best_first) const = 0;
  /// Told after a batch: the tenant's share of its time.
  virtual void charge(tenant_id tenant, microseconds used) { (void)tenant, (void)used; }
};

/// "fifo" or "fair_share".
result<std::unique_ptr<policy>> make_policy(std::string_view name);

}  // namespace redline::scheduler
