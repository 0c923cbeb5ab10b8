#pragma once

#include <optional>
#include <span>

#include "scheduler/standing.hpp"

namespace redline::scheduler {

/// A sequence as preemption sees it.
struct preemption_candidate {
  sequence_id sequence;
  standing at;
};

/// Whom to help: of the sequences that lack pages the one that arrived first. The one that ranks first may be the
/// youngest, and then none would have to yield. nullptr if there is none.
[[nodiscard]] const preemption_candidate* choose_starving(std::span<const preemption_candidate> lack_pages);

/// The sequence that loses its KV so that `starving` can run: of those with KV and no run in flight the one that has
/// been idle for longest; prefills count as idle. Else the latest comer, if it came after the starving one, so that the
/// oldest sequence always gets on. When no other sequence has KV, the starving one's own table must be what takes too
/// many pages (slots lie empty between moved pieces): it loses its own and is computed anew. nullopt if none can yield
/// now.
[[nodiscard]] std::optional<sequence_id> choose_victim(std::span<const preemption_candidate> with_kv,
                                                       const preemption_candidate& starving, instant now);

}  // namespace redline::scheduler
