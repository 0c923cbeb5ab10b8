#include "scheduler/policies/fifo.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace redline::scheduler {

bool fifo_before(const work_item& a, const work_item& b) {
  if (a.decodes() != b.decodes()) return a.decodes();
  // Decodes that find no room take turns; of prompts the first ends soonest if the others wait.
  if (a.decodes() && a.missed_count != b.missed_count) return a.missed_count > b.missed_count;
  return std::pair(a.arrival, a.sequence) < std::pair(b.arrival, b.sequence);
}

void fifo::rank(std::span<const work_item> items, instant, std::vector<item_index>& best_first) const {
  best_first.resize(items.size());
  std::iota(best_first.begin(), best_first.end(), item_index{0});
  std::sort(best_first.begin(), best_first.end(),
            [&](item_index a, item_index b) { return fifo_before(items[a], items[b]); });
}

}  // namespace redline::scheduler
