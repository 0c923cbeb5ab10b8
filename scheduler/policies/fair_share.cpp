#include "scheduler/policies/fair_share.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_set>

#include "scheduler/policies/fifo.hpp"

namespace redline::scheduler {

void fair_share::rank(std::span<const work_item> items, instant, std::vector<item_index>& best_first) const {
  std::unordered_set<tenant_id> present;
  for (const auto& item : items) present.insert(item.tenant);
  std::erase_if(used_us_, [&](const auto& entry) { return !present.contains(entry.first); });
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [tenant, used] : used_us_) least = std::min(least, used);
  if (used_us_.empty()) least = 0;
  for (const tenant_id tenant : present) used_us_.try_emplace(tenant, least);

  best_first.resize(items.size());
  std::iota(best_first.begin(), best_first.end(), item_index{0});
  std::sort(best_first.begin(), best_first.end(), [&](item_index a, item_index b) {
    const std::int64_t used_a = used_us_.at(items[a].tenant);
    const std::int64_t used_b = used_us_.at(items[b].tenant);
    if (used_a != used_b) return used_a < used_b;
    return fifo_before(items[a], items[b]);
  });
}

void fair_share::charge(tenant_id tenant, microseconds used) {
  const auto it = used_us_.find(tenant);
  if (it != used_us_.end()) it->second += used.count();
}

}  // namespace redline::scheduler
