#include "scheduler/preemption.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/base/tenant_share.hpp"

namespace redline::scheduler {
namespace {

bool came_before(const preemption_candidate& a, const preemption_candidate& b) {
  return std::pair(a.at.arrival, a.sequence) < std::pair(b.at.arrival, b.sequence);
}

bool is_idle(const priority_facts& s, instant now) { return s.open ? s.prefill_only : s.is_idle(now); }

bool yields_before(const preemption_candidate& a, const preemption_candidate& b, instant now) {
  const bool a_is_idle = is_idle(a.at, now);
  if (a_is_idle != is_idle(b.at, now)) return a_is_idle;
  if (a_is_idle) return std::pair(a.at.idle_since, a.sequence) < std::pair(b.at.idle_since, b.sequence);
  return came_before(b, a);
}

/// The KV that each tenant has, and its first sequence.
class tenant_holdings {
 public:
  tenant_holdings(std::span<const preemption_candidate> with_kv, const preemption_candidate& starving) {
    all_[starving.at.tenant];
    for (const auto& each : with_kv) {
      auto& own = all_[each.at.tenant];
      own.held += each.held;
      if (own.first == nullptr || came_before(each, *own.first)) own.first = &each;
      held_ += each.held;
    }
  }
  [[nodiscard]] std::uint64_t held(tenant_id tenant) const { return all_.at(tenant).held; }
  [[nodiscard]] bool is_over_share(tenant_id tenant) const { return share().is_over(held(tenant)); }
  [[nodiscard]] bool is_below_share(tenant_id tenant) const { return share().is_below(held(tenant)); }
  [[nodiscard]] bool is_first(const preemption_candidate& c) const { return all_.at(c.at.tenant).first == &c; }

 private:
  struct holding {
    std::uint64_t held = 0;
    const preemption_candidate* first = nullptr;
  };
  [[nodiscard]] equal_share share() const { return {held_, all_.size()}; }

  std::map<tenant_id, holding> all_;
  std::uint64_t held_ = 0;
};

/// A sequence of the tenant that has the most KV, if the starving sequence's tenant may take from it.
const preemption_candidate* choose_over_share(std::span<const preemption_candidate> with_kv,
                                              const preemption_candidate& starving, const tenant_holdings& tenants) {
  const tenant_id own = starving.at.tenant;
  if (!tenants.is_below_share(own)) return nullptr;
  const preemption_candidate* victim = nullptr;
  for (const auto& each : with_kv) {
    const tenant_id its = each.at.tenant;
    if (each.at.in_flight || !tenants.is_over_share(its) || tenants.is_first(each)) continue;
    // Otherwise the two tenants would take from each other in turn.
    if (tenants.held(its) - each.held < tenants.held(own)) continue;
    const bool is_later = victim != nullptr && its == victim->at.tenant && came_before(*victim, each);
    if (victim == nullptr || tenants.held(its) > tenants.held(victim->at.tenant) || is_later) victim = &each;
  }
  return victim;
}

}  // namespace

void sort_starving(std::vector<preemption_candidate>& lack_pages) {
  std::sort(lack_pages.begin(), lack_pages.end(), came_before);
}

std::optional<sequence_id> choose_victim(std::span<const preemption_candidate> with_kv,
                                         const preemption_candidate& starving, instant now) {
  const tenant_holdings tenants(with_kv, starving);
  const bool is_oldest = std::none_of(with_kv.begin(), with_kv.end(),
                                      [&](const preemption_candidate& each) { return came_before(each, starving); });
  const bool takes_from_own = !is_oldest && tenants.is_over_share(starving.at.tenant);
  const preemption_candidate* victim = nullptr;
  bool others = false;
  for (const auto& each : with_kv) {
    if (each.at.in_flight || each.sequence == starving.sequence) continue;
    others = true;
    if (takes_from_own && !is_idle(each.at, now) && !tenants.is_over_share(each.at.tenant)) continue;
    if (victim == nullptr || yields_before(each, *victim, now)) victim = &each;
  }
  if (!others) {
    const bool is_alone = with_kv.size() == 1 && with_kv.front().sequence == starving.sequence;
    return is_alone && !starving.at.in_flight ? std::optional(starving.sequence) : std::nullopt;
  }
  if (victim != nullptr && is_idle(victim->at, now)) return victim->sequence;
  if (const auto* one = choose_over_share(with_kv, starving, tenants)) return one->sequence;
  const bool yields = victim != nullptr && came_before(starving, *victim);
  return yields ? std::optional(victim->sequence) : std::nullopt;
}

}  // namespace redline::scheduler
