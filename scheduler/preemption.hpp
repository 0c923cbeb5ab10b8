#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/priority_facts.hpp"

namespace redline::scheduler {

/// A sequence as preemption sees it.
struct preemption_candidate {
  sequence_id sequence;
  priority_facts at;
  std::uint32_t held = 0;  // tokens with KV
};

/// Sorts sequences that lack pages by arrival, the order in which they get help. The sequence that ranks first may be
/// the youngest, and then none would have to yield.
void sort_starving(std::vector<preemption_candidate>& lack_pages);

/// The sequence that loses its KV so that `starving` can run, or nullopt if none can yield now. Among sequences with KV
/// and no run in flight, the one idle the longest goes first; prefills count as idle. Otherwise, if the starving
/// sequence's tenant has less than an equal share of the KV, the latest arrival of the tenant with the most KV yields,
/// unless it is that tenant's first sequence or the tenant would then have less than the starving one's tenant.
/// Otherwise the latest arrival of all yields if it came after `starving`, so that the oldest sequence always advances;
/// but only the oldest takes from a tenant within its share when its own is over. If no other sequence has KV, the
/// starving one's own table must take too many pages (slots lie empty between moved pieces): it loses its own KV and is
/// computed again.
[[nodiscard]] std::optional<sequence_id> choose_victim(std::span<const preemption_candidate> with_kv,
                                                       const preemption_candidate& starving, instant now);

}  // namespace redline::scheduler
