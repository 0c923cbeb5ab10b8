#include <algorithm>
#include <limits>
#include <unordered_map>

#include "scheduler/policy.hpp"

namespace redline::scheduler {
namespace {

// Longer than a session takes between two rounds.
constexpr microseconds away_max{1'000'000};

/// The tenant that has used the least measured forward time goes first. A tenant that was away for longer than the time
/// between two rounds returns at the minimum of the tenants that stayed: absence earns no credit.
class fair_share final : public policy {
 public:
  [[nodiscard]] std::uint64_t key(const work_item& item) const override {
    return accounts_.at(item.facts.tenant).used_us;
  }

  void see(std::span<const work_item> items, instant now) override {
    std::erase_if(accounts_, [&](const auto& entry) { return now - entry.second.seen > away_max; });
    std::uint64_t least = accounts_.empty() ? 0 : std::numeric_limits<std::uint64_t>::max();
    for (const auto& [tenant, each] : accounts_) least = std::min(least, each.used_us);
    for (const auto& item : items)
      accounts_.try_emplace(item.facts.tenant, account{least, now}).first->second.seen = now;
  }

  void charge(tenant_id tenant, microseconds used) override {
    const auto it = accounts_.find(tenant);
    if (it != accounts_.end())
      it->second.used_us += static_cast<std::uint64_t>(std::max<std::int64_t>(0, used.count()));
  }

 private:
  struct account {
    std::uint64_t used_us = 0;
    instant seen;
  };
  std::unordered_map<tenant_id, account> accounts_;  // tenants that have work now or had some recently
};

}  // namespace

std::unique_ptr<policy> make_fair_share() { return std::make_unique<fair_share>(); }

}  // namespace redline::scheduler
