#include "scheduler/policies/fair_share.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "scheduler/policies/fifo.hpp"

namespace redline::scheduler {
namespace {
// A session between two rounds is back sooner.
constexpr microseconds away_max{1'000'000};
}  // namespace

void fair_share::rank(std::span<const work_item> items, instant now, std::vector<item_index>& best_first) const {
  std::erase_if(accounts_, [&](const auto& entry) { return now - entry.second.seen > away_max; });
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [tenant, each] : accounts_) least = std::min(least, each.used_us);
  if (accounts_.empty()) least = 0;
  for (const auto& item : items) accounts_.try_emplace(item.tenant, account{least, now}).first->second.seen = now;

  best_first.resize(items.size());
  std::iota(best_first.begin(), best_first.end(), item_index{0});
  std::sort(best_first.begin(), best_first.end(), [&](item_index a, item_index b) {
    const std::int64_t used_a = accounts_.at(items[a].tenant).used_us;
    const std::int64_t used_b = accounts_.at(items[b].tenant).used_us;
    if (used_a != used_b) return used_a < used_b;
    return fifo_before(items[a], items[b]);
  });
}

void fair_share::charge(tenant_id tenant, microseconds used) {
  const auto it = accounts_.find(tenant);
  if (it != accounts_.end()) it->second.used_us += used.count();
}

}  // namespace redline::scheduler
