#include "scheduler/preemption.hpp"

#include <utility>

namespace redline::scheduler {
namespace {

bool came_before(const preemption_candidate& a, const preemption_candidate& b) {
  return std::pair(a.at.arrival, a.sequence) < std::pair(b.at.arrival, b.sequence);
}

bool is_idle(const standing& s, instant now) { return s.open ? s.prefill_only : s.is_idle(now); }

bool yields_before(const preemption_candidate& a, const preemption_candidate& b, instant now) {
  const bool a_is_idle = is_idle(a.at, now);
  if (a_is_idle != is_idle(b.at, now)) return a_is_idle;
  if (a_is_idle) return std::pair(a.at.idle_since, a.sequence) < std::pair(b.at.idle_since, b.sequence);
  return came_before(b, a);
}

}  // namespace

const preemption_candidate* choose_starving(std::span<const preemption_candidate> lack_pages) {
  const preemption_candidate* oldest = nullptr;
  for (const auto& each : lack_pages) {
    if (oldest == nullptr || came_before(each, *oldest)) oldest = &each;
  }
  return oldest;
}

std::optional<sequence_id> choose_victim(std::span<const preemption_candidate> with_kv,
                                         const preemption_candidate& starving, instant now) {
  const preemption_candidate* victim = nullptr;
  for (const auto& each : with_kv) {
    if (each.at.in_flight || each.sequence == starving.sequence) continue;
    if (victim == nullptr || yields_before(each, *victim, now)) victim = &each;
  }
  if (victim == nullptr) {
    const bool is_alone = with_kv.size() == 1 && with_kv.front().sequence == starving.sequence;
    return is_alone && !starving.at.in_flight ? std::optional(starving.sequence) : std::nullopt;
  }
  const bool yields = is_idle(victim->at, now) || came_before(starving, *victim);
  return yields ? std::optional(victim->sequence) : std::nullopt;
}

}  // namespace redline::scheduler
