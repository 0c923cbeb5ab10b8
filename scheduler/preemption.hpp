#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/standing.hpp"

namespace redline::scheduler {

/// A sequence as preemption sees it.
struct preemption_candidate {
  sequence_id sequence;
  standing at;
  std::uint32_t held = 0;  // tokens with KV
};

/// Those that lack pages in the order in which they are to be helped: of arrival. The one that ranks first may be the
/// youngest, and then none would have to yield.
void sort_starving(std::vector<preemption_candidate>& lack_pages);

/// The sequence that loses its KV so that `starving` can run: of those with KV and no run in flight the one that has
/// been idle for longest; prefills count as idle. Else, while the starving one's tenant holds less than an equal share
/// of the KV, the latest comer of the tenant that holds most, unless that tenant would hold less than the starving
/// one's afterwards, or the comer is its first. Else the latest comer of all, if it came after the starving one, so
/// that the oldest sequence always gets on; but only the oldest of all takes from a tenant within its share when its
/// own holds more. When no other sequence has KV, the starving one's own table must be what takes too many pages (slots
/// lie empty between moved pieces): it loses its own and is computed anew. nullopt if none can yield now.
[[nodiscard]] std::optional<sequence_id> choose_victim(std::span<const preemption_candidate> with_kv,
                                                       const preemption_candidate& starving, instant now);

}  // namespace redline::scheduler
