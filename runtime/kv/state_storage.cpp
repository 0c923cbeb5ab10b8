#include "runtime/kv/state_storage.hpp"

#include <algorithm>

#include "runtime/base/assert.hpp"

namespace redline::kv {

amount state_storage::free() const {
  amount out;
  out[kind::state_slot] = slots_count_ - static_cast<std::uint32_t>(held_.size());
  return out;
}

void state_storage::add_growth(sequence_id sequence, const page_table&, growth& to) const {
  if (!held_.contains(sequence)) to.opening[kind::state_slot] = 1;
  to.drafts_max = std::min(to.drafts_max, records_max_ - 1);
}

/// There is a state only for the rows of the last run and for what came before them.
std::uint32_t state_storage::resume_at(sequence_id sequence, const page_table&, std::uint32_t length) const {
  const auto at = held_.find(sequence);
  return at == held_.end() || length < at->second.base ? 0 : std::min(length, at->second.end());
}

void state_storage::rewind(sequence_id sequence, page_table& table) {
  const auto at = held_.find(sequence);
  if (at == held_.end()) return;
  if (table.token_count() < at->second.base) return release(sequence);
  at->second.records = table.token_count() - at->second.base;
}

bool state_storage::pin(sequence_id sequence, page_table&, std::uint32_t length) {
  const auto at = held_.find(sequence);
  return length == (at == held_.end() ? 0 : at->second.end());
}

void state_storage::extend(const run_range& run, page_table&) {
  auto [at, is_new] = held_.try_emplace(run.sequence);
  holding& h = at->second;
  if (is_new) h.slot = take_for_sequence();
  h.base_before = h.base;
  h.records_before = h.records;
  h.use = {.slot = h.slot, .begins = h.end() == 0, .records = h.records, .kept = run.count - 1 - run.drafts_count};
  h.base = run.first + h.use.kept;
  h.records = 1 + run.drafts_count;
  const bool is_prompt = run.drafts_count == 0 && run.count > 1;
  const std::uint32_t last = h.base / page_tokens * page_tokens;
  const auto is_parting = [&](std::uint32_t length) {
    return std::ranges::any_of(run.partings, [=](std::uint32_t p) { return p / page_tokens * page_tokens == length; });
  };
  for (std::uint32_t length = (h.base_before / page_tokens + 1) * page_tokens; length <= last; length += page_tokens) {
    const bool is_last = length % spacing != 0 && !is_parting(length);
    if (is_last && (length != last || (is_prompt && !run.partings.empty()))) continue;
    const auto replaced = std::ranges::find_if(
        h.borders, [&](const auto& b) { return is_last && b.second.is_last && b.second.is_prompt == is_prompt; });
    if (replaced != h.borders.end()) {
      give(replaced->second.slot);
      h.borders.erase(replaced);
    }
    const auto slot = take_for_copy();
    if (!slot) break;
    h.borders[length] = {*slot, is_prompt, is_last};
    h.use.snapshots.push_back({length - h.base_before, *slot});
  }
}

void state_storage::describe(const run_range& run, const page_table&, run_memory& out) const {
  out.state = held_.at(run.sequence).use;
}

std::uint32_t state_storage::adopt(sequence_id sequence, page_table& table) {
  const auto pages = table.whole_pages(~0U);
  for (std::size_t count = pages.size(); count > 0; --count) {
    const auto known = snapshots_.find(pages[count - 1]);
    if (known == snapshots_.end()) continue;
    note_use(known->second);
    if (held_.size() == slots_count_) return 0;
    holding& h = held_[sequence];
    h.slot = take_for_sequence();
    copies_.push_back({known->second.slot, h.slot});
    h.base = h.made = static_cast<std::uint32_t>(count) * page_tokens;
    return h.base;
  }
  return 0;
}

bool state_storage::is_richer(sequence_id sequence, std::size_t index, page_id known) const {
  const auto at = held_.find(sequence);
  const auto length = static_cast<std::uint32_t>(index + 1) * page_tokens;
  return at != held_.end() && length <= at->second.made && at->second.borders.contains(length) &&
         !snapshots_.contains(known);
}

void state_storage::offer(sequence_id sequence, const page_table&, std::span<const page_id> pages) {
  const auto at = held_.find(sequence);
  if (at == held_.end()) return;
  holding& h = at->second;
  // Later ones may be offered once they are made and their pages are known to be exact.
  for (auto border = h.borders.begin(); border != h.borders.end() && border->first <= h.made;) {
    const auto& [length, b] = *border;
    const std::size_t index = length / page_tokens - 1;
    if (index >= pages.size()) break;
    if (!pool_.is_kept(pages[index]) || snapshots_.contains(pages[index])) {
      give(b.slot);
    } else {
      keep(pages, index, b.slot);
      auto& last = b.is_prompt ? h.of_prompt : h.of_answer;
      if (b.is_last && last) forget(*last);
      if (b.is_last) last = pages[index];
    }
    border = h.borders.erase(border);
  }
}

/// Makes a snapshot of the prefix that ends with page `index`.
void state_storage::keep(std::span<const page_id> pages, std::size_t index, std::uint32_t slot) {
  snapshot made{.slot = slot, .length = static_cast<std::uint32_t>(index + 1) * page_tokens};
  for (std::size_t i = index; i > 0 && !made.before; --i) {
    if (snapshots_.contains(pages[i - 1])) made.before = pages[i - 1];
  }
  for (std::size_t i = index + 1; i < pages.size(); ++i) {
    const auto next = snapshots_.find(pages[i]);
    if (next == snapshots_.end()) continue;
    next->second.before = pages[index];
    break;
  }
  note_use(made);
  snapshots_.emplace(pages[index], made);
}

void state_storage::forget(page_id page) {
  const auto at = snapshots_.find(page);
  if (at == snapshots_.end()) return;
  for (auto& [other, s] : snapshots_) {
    if (s.before == page) s.before = at->second.before;
  }
  give(at->second.slot);
  snapshots_.erase(at);
}

std::uint64_t state_storage::level_of(const snapshot& s) const {
  return s.level + s.length - (s.before ? snapshots_.at(*s.before).length : 0);
}

void state_storage::note_use(snapshot& s) {
  s.level = level_;
  s.order = ++uses_;
}

void state_storage::release(sequence_id sequence) {
  const auto at = held_.find(sequence);
  if (at == held_.end()) return;
  drop_borders(at->second, 0);
  give(at->second.slot);
  held_.erase(at);
}

/// A state cannot lose a token that is in it.
void state_storage::note_splice(sequence_id sequence, std::uint32_t at) {
  const auto known = held_.find(sequence);
  if (known != held_.end() && at < known->second.end()) release(sequence);
}

void state_storage::note_computed(sequence_id sequence) {
  const auto at = held_.find(sequence);
  if (at != held_.end()) at->second.made = at->second.base;
}

void state_storage::put_back(sequence_id sequence) {
  const auto at = held_.find(sequence);
  if (at == held_.end()) return;
  holding& h = at->second;
  drop_borders(h, h.base_before + 1);
  h.base = h.base_before;
  h.records = h.records_before;
}

void state_storage::clear() {
  taken_.assign(taken_.size(), false);
  held_.clear();
  snapshots_.clear();
  copies_.clear();
}

void state_storage::take_copies(std::vector<state_copy>& to) {
  to.insert(to.end(), copies_.begin(), copies_.end());
  copies_.clear();
}

void state_storage::drop_borders(holding& h, std::uint32_t from) {
  const auto first = h.borders.lower_bound(from);
  for (auto at = first; at != h.borders.end(); ++at) give(at->second.slot);
  h.borders.erase(first, h.borders.end());
}

/// Takes an unused slot of [from, end).
std::optional<std::uint32_t> state_storage::take_unused(std::uint32_t from, std::size_t end) {
  const auto last = taken_.begin() + static_cast<std::ptrdiff_t>(end);
  const auto at = std::find(taken_.begin() + from, last, false);
  if (at == last) return std::nullopt;
  *at = true;
  return static_cast<std::uint32_t>(at - taken_.begin());
}

/// Takes an unused slot, or that of the snapshot with the lowest level; of equal ones, the least recently used.
std::optional<std::uint32_t> state_storage::take_for_copy() {
  if (const auto unused = take_unused(slots_count_, taken_.size())) return unused;
  const auto rank = [this](const auto& s) { return std::pair(level_of(s.second), s.second.order); };
  const auto lowest = std::ranges::min_element(snapshots_, {}, rank);
  if (lowest == snapshots_.end()) return std::nullopt;
  level_ = std::max(level_, level_of(lowest->second));
  forget(page_id(lowest->first));
  return take_unused(slots_count_, taken_.size());
}

std::uint32_t state_storage::take_for_sequence() {
  const auto slot = take_unused(0, slots_count_);
  REDLINE_ASSERT(slot.has_value(), "a slot was free when the pass was planned");
  return *slot;
}

void state_storage::check_integrity() const {
  std::size_t owned = held_.size() + snapshots_.size();
  for (const auto& [sequence, h] : held_) owned += h.borders.size();
  REDLINE_ASSERT(owned == static_cast<std::size_t>(std::ranges::count(taken_, true)), "a slot has one owner");
  for (const auto& [page, s] : snapshots_) {
    REDLINE_ASSERT(!s.before || snapshots_.at(*s.before).length < s.length, "a snapshot is of a part of the prefix");
  }
}

}  // namespace redline::kv
