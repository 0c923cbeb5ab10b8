#include "runtime/kv/cache.hpp"

#include <algorithm>
#include <utility>

#include "runtime/base/assert.hpp"
#include "runtime/kv/state_storage.hpp"
#include "runtime/kv/window_storage.hpp"

namespace redline::kv {

cache::cache(pool_size size) : pool_(size) {
  if (pool_.windows() != nullptr) add(std::make_unique<window_storage>(pool_));
  if (size.state_slots != 0) add(std::make_unique<state_storage>(pool_, size));
}

void cache::add(std::unique_ptr<storage> more) {
  REDLINE_ASSERT(tables_.empty(), "kinds of memory are added before the first sequence");
  kinds_.push_back(std::move(more));
}

amount cache::free() const {
  amount out = pages(pool_.free_count() + pool_.spare_count());
  for (const auto& each : kinds_) out += each->free();
  return out;
}

std::uint32_t cache::state_copies() const {
  std::uint32_t count = 0;
  for (const auto& kind : kinds_) count += kind->copies_kept();
  return count;
}

growth cache::next(sequence_id sequence) const {
  static const page_table nothing;
  const auto at = tables_.find(sequence);
  const page_table& table = at == tables_.end() ? nothing : at->second;
  growth out{.room = table.room(pool_)};
  for (const auto& each : kinds_) each->add_growth(sequence, table, out);
  return out;
}

std::uint32_t cache::length(sequence_id sequence) const {
  const auto at = tables_.find(sequence);
  return at == tables_.end() ? 0 : at->second.token_count();
}

std::uint32_t cache::adopt(sequence_id sequence, tenant_id scope, std::span<const token> log) {
  release(sequence);
  page_table& table = tables_[sequence];
  for (const page_id page : prefixes_.find(scope, log)) table.append_shared(pool_, page);
  std::uint32_t count = table.token_count();
  for (const auto& each : kinds_) {
    count = std::min(count, each->adopt(sequence, table));
    table.truncate(pool_, count);
  }
  return rewind(sequence, count);
}

void cache::offer(sequence_id sequence, tenant_id scope, std::span<const token> exact) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end()) return;
  const std::vector<page_id> whole = it->second.whole_pages(static_cast<std::uint32_t>(exact.size() / page_tokens));
  prefixes_.add(pool_, scope, exact, whole, [&](std::size_t i, page_id known) {
    return std::ranges::any_of(kinds_, [&](const auto& k) { return k->is_richer(sequence, i, known); });
  });
  for (const auto& each : kinds_) each->offer(sequence, it->second, whole);
  forget_given_up();
}

std::uint32_t cache::rewind(sequence_id sequence, std::uint32_t length) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end()) return 0;
  page_table& table = it->second;
  length = std::min(length, table.token_count());
  // If one kind cannot continue from a length, the others need not support it either.
  for (bool is_agreed = false; !is_agreed;) {
    is_agreed = true;
    for (const auto& each : kinds_) {
      const std::uint32_t at = each->resume_at(sequence, table, length);
      is_agreed = is_agreed && at == length;
      length = at;
    }
  }
  table.truncate(pool_, length);
  for (const auto& each : kinds_) each->rewind(sequence, table);
  return length;
}

void cache::splice(sequence_id sequence, const table_splice& s) {
  page_table& table = tables_[sequence];
  table.truncate(pool_, s.keep_count);
  table.splice(pool_, s.at, s.removed_count, s.shift);
  for (const auto& each : kinds_) each->note_splice(sequence, s.at);
  if (s.policy != splice_policy::eager) return;
  const auto moves = table.apply_offsets(pool_, s.at);
  moves_.insert(moves_.end(), moves.begin(), moves.end());
}

std::vector<sequence_id> cache::pin(std::span<const run_range> runs) {
  std::vector<sequence_id> lost;
  for (const run_range& run : runs) {
    page_table& table = tables_[run.sequence];
    REDLINE_ASSERT(run.first <= table.token_count() && run.drafts_count < run.count,
                   "a run begins within its table or at its end");
    const bool is_there = std::ranges::all_of(kinds_, [&](auto& k) { return k->pin(run.sequence, table, run.first); });
    if (!is_there) lost.push_back(run.sequence);
  }
  return lost;
}

std::uint32_t cache::pages_needed(std::span<const run_range> runs) const {
  std::uint64_t needed = 0;
  for (const run_range& run : runs) needed += tables_.at(run.sequence).pages_needed(pool_, run.count);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(needed, pool_.pages_count() + 1ULL));
}

bool cache::compact(sequence_id sequence) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end() || !it->second.is_fragmented()) return false;
  const std::uint32_t held = it->second.held_count();
  const auto moves = it->second.compact(pool_);
  moves_.insert(moves_.end(), moves.begin(), moves.end());
  for (const auto& each : kinds_) each->rewind(sequence, it->second);
  return it->second.held_count() < held;
}

/// Compacts fragmented tables while there are free pages that these runs do not need.
void cache::compact_fragmented(std::span<const run_range> runs) {
  bool compacted = false;
  for (const run_range& run : runs) {
    const page_table& table = tables_.at(run.sequence);
    if (!table.is_fragmented()) continue;
    const std::uint64_t copied = table.token_count() / page_tokens + 1;
    // A compacted table may have less free space than before: one more page for each run.
    if (pages_needed(runs) + runs.size() + copied > pool_.available()) continue;
    compact(run.sequence);
    compacted = true;
  }
  if (compacted) (void)pin(runs);  // keeps no more than before
}

std::variant<allocated, kv_lost, shortage> cache::allocate(std::span<const run_range> runs) {
  if (auto lost = pin(runs); !lost.empty()) return kv_lost{std::move(lost)};
  compact_fragmented(runs);
  amount needed;
  for (const run_range& run : runs) needed += next(run.sequence).taken_by(run.count);
  if (!needed.fits(free()) || !prefixes_.make_room(pool_, needed[kind::page])) return shortage{};
  forget_given_up();
  allocated out{.moves = std::exchange(moves_, {})};
  out.runs.resize(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    page_table& table = tables_.at(runs[i].sequence);
    const bool has_room = table.insert(pool_, runs[i].first, runs[i].count);
    REDLINE_ASSERT(has_room, "the pool has the pages that the pass was planned with");
    for (const auto& each : kinds_) each->extend(runs[i], table);
    out.runs[i].table = table.prefix(runs[i].end());
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    page_table& table = tables_.at(runs[i].sequence);
    for (const auto& each : kinds_) each->describe(runs[i], table, out.runs[i]);
    for (const auto& each : kinds_) each->note_pass(runs[i], table);
  }
  for (const auto& each : kinds_) each->take_copies(out.copies);
  return out;
}

void cache::note_computed(sequence_id sequence) {
  for (const auto& each : kinds_) each->note_computed(sequence);
}

void cache::put_back(sequence_id sequence) {
  for (const auto& each : kinds_) each->put_back(sequence);
}

void cache::release(sequence_id sequence) {
  const auto it = tables_.find(sequence);
  if (it == tables_.end()) return;
  it->second.clear(pool_);
  tables_.erase(it);
  for (const auto& each : kinds_) each->release(sequence);
}

void cache::clear() {
  for (auto& [id, table] : tables_) table.clear(pool_);
  tables_.clear();
  prefixes_.clear(pool_);
  forget_given_up();
  for (const auto& each : kinds_) each->clear();
  moves_.clear();
}

/// Kinds may store something about cached pages.
void cache::forget_given_up() {
  for (const page_id page : pool_.take_given_up()) {
    for (const auto& each : kinds_) each->forget(page);
  }
}

void cache::check_sums() const {
  std::uint64_t owned = prefixes_.pages_count();
  for (const auto& [id, table] : tables_) owned += table.pages_count();
  REDLINE_ASSERT(owned == pool_.references_total(), "there are as many references as owners");
}

std::size_t cache::check_some(std::uint32_t count) {
  check_sums();
  const std::uint32_t of_pool = std::min(count, pool_.pages_count() - next_page_);
  pool_.check_some(next_page_, of_pool);
  next_page_ = next_page_ + of_pool == pool_.pages_count() ? 0 : next_page_ + of_pool;
  prefixes_.check_some(pool_, count, next_known_);
  if (next_tables_.empty()) {
    for (const auto& [id, table] : tables_) next_tables_.push_back(id);
  }
  std::size_t of_tables = 0;
  for (; of_tables < count && !next_tables_.empty(); next_tables_.pop_back()) {
    const auto at = tables_.find(next_tables_.back());
    if (at == tables_.end()) continue;
    at->second.check_integrity();
    of_tables += at->second.pages_count();
  }
  return of_pool + next_known_.looked_at + of_tables;
}

void cache::check_integrity() const {
  pool_.check_integrity();
  prefixes_.check_integrity(pool_);
  for (const auto& each : kinds_) each->check_integrity();
  check_sums();
  std::vector<std::uint32_t> owners(pool_.pages_count(), 0);
  for (const auto& [id, table] : tables_) {
    table.check_integrity();
    table.for_each_page([&](page_id page) { ++owners[page.value]; });
  }
  for (std::uint32_t page = 0; page < owners.size(); ++page) {
    const std::uint32_t kept = pool_.is_kept(page_id{page}) ? 1 : 0;
    REDLINE_ASSERT(pool_.references(page_id{page}) == owners[page] + kept, "a page has as many references as owners");
  }
}

}  // namespace redline::kv
