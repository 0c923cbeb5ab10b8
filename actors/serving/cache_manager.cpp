#include "actors/serving/cache_manager.hpp"

#include <algorithm>
#include <utility>

#include "actors/serving/target_model.hpp"

namespace redline::actors {

/// In so long all has been checked once, a part after the other.
static constexpr microseconds check_interval{10'000'000};
/// Looking at what was used last takes a millisecond; many gateways ask.
static constexpr microseconds kept_interval{900'000};

cache_manager::cache_manager(actor::actor_context& context, kv::pool_size size, actor::actor_ref<target_model> target,
                             listener changes)
    : actor_of(context), pool_(size), target_(target), kept_(context.env().random()), listener_(std::move(changes)) {
  if (listener_) prefixes_.note_changes();
}

// One before this one may have told of pages.
void cache_manager::on_start() {
  if (listener_) listener_({{.what = kv::prefix_change::kind::cleared}});
}

void cache_manager::tell_changes() {
  if (!listener_) return;
  const auto changes = prefixes_.take_changes();
  if (!changes.empty()) listener_(changes);
}

/// What was known in another epoch is gone.
void cache_manager::enter(std::uint64_t epoch) {
  if (epoch == epoch_) return;
  for (auto& [id, table] : tables_) table.clear(pool_);
  tables_.clear();
  prefixes_.clear(pool_);
  tell_changes();
  moves_.clear();
  passed_on_ = 0;
  epoch_ = epoch;
}

void cache_manager::on(const place_batch& m) {
  place(m);
  tell_changes();
}

void cache_manager::place(const place_batch& m) {
  enter(m.epoch);
  if (m.batch == passed_on_) return;
  // Everything that shrinks goes first, so that the batch can use what it gives back.
  bool are_known = true;
  for (const table_change& change : m.changes) are_known = apply(change) && are_known;
  for (const batch_run& run : m.runs) {
    const auto table = tables_.find(run.sequence);
    are_known = are_known && table != tables_.end() && run.first_position >= 0 &&
                static_cast<std::uint32_t>(run.first_position) <= table->second.token_count();
  }
  if (!are_known) return hold(m, true);
  if (auto lost = hold_windows(m); !lost.empty()) return hold(m, false, std::move(lost));
  compact_fragmented(m);
  const std::uint64_t needed = pages_needed(m);
  const bool has_pages = needed <= std::min(pool_.pages_count(), window_free_count()) &&
                         prefixes_.make_room(pool_, static_cast<std::uint32_t>(needed));
  if (m.runs.empty() || !has_pages) return hold(m, false);
  forward_batch batch{.batch = m.batch, .runs = m.runs};
  for (batch_run& run : batch.runs) {
    auto& table = tables_.at(run.sequence);
    const auto first = static_cast<std::uint32_t>(run.first_position);
    const auto count = static_cast<std::uint32_t>(run.tokens.size());
    if (!table.insert(pool_, first, count)) return hold(m, true);  // two runs of one sequence
    run.table = table.prefix(first + count);
  }
  // What a pass reads is let go when all of its pages are taken; nobody takes others before it is done.
  for (batch_run& run : batch.runs) {
    if (pool_.windows() == nullptr) break;
    auto& table = tables_.at(run.sequence);
    const auto first = static_cast<std::uint32_t>(run.first_position);
    const auto end = first + static_cast<std::uint32_t>(run.tokens.size());
    run.window_table = table.window_pieces(pool_, pool_.windows()->first_seen(first), end);
    table.hold_windows(pool_, end - std::min(run.draft_count, end));
  }
  batch.moves = std::exchange(moves_, {});
  batch.pages = report(m);
  passed_on_ = m.batch;
  scheduler_ = context().sender();
  context().tell(target_, batch);
}

/// False when the table is another than the scheduler believes: one of the two lost its memory.
bool cache_manager::apply(const table_change& change) {
  kv::page_table& table = tables_[change.sequence];
  for (const table_splice& s : change.splices) {
    table.truncate(pool_, s.keep_count);
    const std::uint32_t count = table.token_count();
    if (count != s.keep_count || s.at > count || s.removed_count > count - s.at) return false;
    table.splice(pool_, s.at, s.removed_count, s.shift);
    if (s.policy != kv::splice_policy::eager) continue;
    const auto moves = table.apply_offsets(pool_, s.at);
    moves_.insert(moves_.end(), moves.begin(), moves.end());
  }
  table.truncate(pool_, change.keep_count);
  return table.token_count() == change.keep_count;
}

/// Tables hold the window pages that their runs will read, or without a run those behind their end. Returns the
/// sequences of runs for which some are gone.
std::vector<sequence_id> cache_manager::hold_windows(const place_batch& m) {
  if (pool_.windows() == nullptr) return {};
  std::unordered_map<sequence_id, std::uint32_t> places;
  for (const batch_run& run : m.runs) places[run.sequence] = static_cast<std::uint32_t>(run.first_position);
  std::vector<sequence_id> lost;
  for (const table_change& change : m.changes) {
    kv::page_table& table = tables_.at(change.sequence);
    const auto place = places.find(change.sequence);
    const std::uint32_t at = place == places.end() ? table.token_count() : place->second;
    table.hold_windows(pool_, at);
    const bool is_whole = table.has_windows(pool_, pool_.windows()->first_seen(at), at);
    if (place != places.end() && !is_whole) lost.push_back(change.sequence);
  }
  return lost;
}

/// Copies the tokens of fragmented tables together, as far as pages are free that this batch does not need.
void cache_manager::compact_fragmented(const place_batch& m) {
  bool compacted = false;
  for (const table_change& change : m.changes) {
    auto& table = tables_.at(change.sequence);
    if (!table.is_fragmented()) continue;
    const std::uint64_t copied = table.token_count() / kv::page_tokens + 1;
    // A compacted table may have less room than before: another page for each.
    if (pages_needed(m) + m.changes.size() + copied > pool_.available()) continue;
    const auto moves = table.compact(pool_);
    moves_.insert(moves_.end(), moves.begin(), moves.end());
    compacted = true;
  }
  if (compacted) (void)hold_windows(m);  // no more than before
}

std::uint64_t cache_manager::pages_needed(const place_batch& m) const {
  std::uint64_t needed = 0;
  for (const batch_run& run : m.runs) {
    needed += tables_.at(run.sequence).pages_needed(pool_, static_cast<std::uint32_t>(run.tokens.size()));
  }
  return needed;
}

void cache_manager::hold(const place_batch& m, bool tables_lost, std::vector<sequence_id> windows_lost) {
  context().send(
      context().sender(),
      batch_held{
          .batch = m.batch, .tables_lost = tables_lost, .pages = report(m), .windows_lost = std::move(windows_lost)});
}

std::uint32_t cache_manager::window_free_count() const {
  return pool_.windows() == nullptr ? page_report::no_windows : pool_.windows()->free_count();
}

page_report cache_manager::report(const place_batch& m) const {
  page_report pages{.free_count = free_count(), .window_free_count = window_free_count()};
  for (const table_change& change : m.changes) {
    pages.rooms.push_back({change.sequence, tables_.at(change.sequence).room(pool_)});
  }
  return pages;
}

void cache_manager::on(const release_pages& m) {
  enter(m.epoch);
  const auto it = tables_.find(m.sequence);
  if (it == tables_.end()) return;
  it->second.clear(pool_);
  tables_.erase(it);
}

void cache_manager::on(const adopt_prefix& m) {
  enter(m.epoch);
  auto& table = tables_[m.sequence];
  table.clear(pool_);
  for (const page_id page : prefixes_.find(m.tenant, m.tokens)) table.append_shared(pool_, page);
  if (const kv::window_pages* windows = pool_.windows()) {
    // As much as can be gone on from: where all that the next row sees is there.
    std::uint32_t count = table.token_count();
    while (!table.has_windows(pool_, windows->first_seen(count), count)) count -= kv::page_tokens;
    table.truncate(pool_, count);
    table.hold_windows(pool_, count);
  }
  context().send(context().sender(),
                 prefix_adopted{m.sequence, m.question, table.token_count(), free_count(), window_free_count()});
}

void cache_manager::on(const offer_prefix& m) {
  enter(m.epoch);
  const auto it = tables_.find(m.sequence);
  if (it == tables_.end()) return;
  std::vector<page_id> pages;
  while ((pages.size() + 1) * kv::page_tokens <= m.tokens.size()) {
    const auto page = it->second.whole_page(static_cast<std::uint32_t>(pages.size()));
    if (!page) break;
    pages.push_back(*page);
  }
  prefixes_.add(pool_, m.tenant, m.tokens, pages);
  tell_changes();
}

void cache_manager::on(const read_kept& m) {
  if (!kept_at_ || context().now() - *kept_at_ >= kept_interval) {
    kept_at_ = context().now();
    kept_.update(prefixes_.recent_blocks(kept_keys_max));
  }
  auto news = kept_.since(m.revision);
  context().send(context().sender(),
                 kept_prefixes{news.revision, news.is_all, std::move(news.added), std::move(news.dropped)});
}

// The scheduler has the tables made anew: this batch's tokens are in them, and its moves are lost.
void cache_manager::on(const actor::undeliverable& m) {
  if (m.what != forward_batch::id) return;
  context().log(log_level::warning, "cannot reach " + actor::to_string(m.to) + ": " + m.why.describe());
  context().send(scheduler_, batch_lost{m.about, m.why});
}

bool cache_manager::on_idle() {
  const std::uint32_t parts = (pool_.pages_count() + check_pages_max - 1) / check_pages_max;
  if (context().now() - checked_ < check_interval / std::max(parts, 1U)) return false;
  checked_ = context().now();
  check_some();
  return false;
}

void cache_manager::check_sums() const {
  std::uint64_t owned = prefixes_.pages_count();
  for (const auto& [id, table] : tables_) owned += table.pages_count();
  REDLINE_ASSERT(owned == pool_.references_total(), "there are as many references as owners");
}

void cache_manager::check_some() {
  check_sums();
  const std::uint32_t pages = std::min(check_pages_max, pool_.pages_count() - next_page_);
  pool_.check_some(next_page_, pages);
  next_page_ = next_page_ + pages == pool_.pages_count() ? 0 : next_page_ + pages;
  prefixes_.check_some(pool_, check_pages_max, next_known_);
  if (next_tables_.empty()) {
    for (const auto& [id, table] : tables_) next_tables_.push_back(id);
  }
  std::size_t of_tables = 0;
  for (; of_tables < check_pages_max && !next_tables_.empty(); next_tables_.pop_back()) {
    const auto at = tables_.find(next_tables_.back());
    if (at == tables_.end()) continue;
    at->second.check_integrity();
    of_tables += at->second.pages_count();
  }
  checked_count_ += pages + next_known_.looked_at + of_tables;
}

void cache_manager::check_integrity() const {
  pool_.check_integrity();
  prefixes_.check_integrity(pool_);
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

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::cache_manager>;
