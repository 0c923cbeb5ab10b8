#include "actors/serving/cache_manager.hpp"

#include <utility>

namespace redline::actors {

/// A check reads every page's count: microseconds, but not for every batch.
static constexpr microseconds check_interval{10'000'000};

cache_manager::cache_manager(actor::actor_context& context, std::uint32_t pages_count)
    : actor_of(context), pool_(pages_count) {}

void cache_manager::on(const reserve_pages& m) {
  if (last_ && m.batch == last_->batch) {
    context().send(context().sender(), *last_);
    return;
  }
  // Everything that shrinks goes first, so that a batch can use what it gives back.
  for (const auto& want : m.wants) sequences_[want.sequence].table.truncate(pool_, want.keep_count);
  tidy_up(m);
  page_grant grant{.batch = m.batch};
  for (const auto& want : m.wants) {
    auto& [table, revision] = sequences_[want.sequence];
    // Another table than the scheduler believes means that one of the two lost its memory: it must hear of that.
    const bool known =
        table.token_count() == want.keep_count && revision == want.revision && want.at <= want.keep_count;
    prefixes_.make_room(pool_, table.pages_needed(pool_, want.append_count));
    if (!known || !table.insert(pool_, want.at, want.append_count)) {
      grant.tables.emplace_back(std::nullopt);
    } else {
      grant.tables.emplace_back(table.prefix(want.at + want.append_count));
    }
    grant.uses.push_back(use_of(table));
  }
  grant.shared_count = shared_count();
  grant.moves = std::exchange(moves_, {});
  last_ = std::move(grant);
  context().send(context().sender(), *last_);
}

page_use cache_manager::use_of(const kv::page_table& table) const {
  page_use use{.room = table.room(pool_)};
  table.for_each_page([&](page_id page) { ++(pool_.is_kept(page) ? use.shared : use.held); });
  return use;
}

/// Fragmented tables are copied together as far as pages are free that this batch does not need.
void cache_manager::tidy_up(const reserve_pages& m) {
  for (const auto& want : m.wants) {
    auto& table = sequences_[want.sequence].table;
    if (!table.is_fragmented()) continue;
    std::uint64_t needed = 0;
    for (const auto& other : m.wants) {
      needed += sequences_[other.sequence].table.pages_needed(pool_, other.append_count) + 1;
    }
    const std::uint64_t copied = table.token_count() / kv::page_tokens + 1;
    if (needed + copied > pool_.free_count()) continue;
    const auto moves = table.compact(pool_);
    moves_.insert(moves_.end(), moves.begin(), moves.end());
  }
}

void cache_manager::on(const release_pages& m) {
  const auto it = sequences_.find(m.sequence);
  if (it == sequences_.end()) return;
  it->second.table.clear(pool_);
  sequences_.erase(it);
}

void cache_manager::on(const drop_all_pages&) {
  for (auto& [id, s] : sequences_) s.table.clear(pool_);
  sequences_.clear();
  prefixes_.clear(pool_);
  moves_.clear();
  last_.reset();
}

// A splice of a table that is not there, or is another, is left out: the next reservation names a revision that the
// table does not have, and all is computed anew.
void cache_manager::on(const splice_pages& m) {
  const auto it = sequences_.find(m.sequence);
  if (it == sequences_.end()) return;
  auto& [table, revision] = it->second;
  table.truncate(pool_, m.keep_count);
  const std::uint32_t count = table.token_count();
  if (count != m.keep_count || m.at > count || m.removed_count > count - m.at || revision + 1 != m.revision) return;
  revision = m.revision;
  table.splice(pool_, m.at, m.removed_count, m.shift);
  if (m.policy != kv::splice_policy::eager) return;
  const auto moves = table.apply_offsets(pool_, m.at);
  moves_.insert(moves_.end(), moves.begin(), moves.end());
}

// A sequence that has pages keeps them: the question comes late.
void cache_manager::on(const adopt_prefix& m) {
  auto& table = sequences_[m.sequence].table;
  if (table.token_count() == 0) {
    for (const page_id page : prefixes_.find(m.tenant, m.tokens)) table.append_shared(pool_, page);
  }
  context().send(context().sender(),
                 prefix_adopted{m.sequence, m.question, table.token_count(), use_of(table), shared_count()});
}

void cache_manager::on(const offer_prefix& m) {
  const auto it = sequences_.find(m.sequence);
  if (it == sequences_.end()) return;
  std::vector<page_id> pages;
  while ((pages.size() + 1) * kv::page_tokens <= m.tokens.size()) {
    const auto page = it->second.table.whole_page(static_cast<std::uint32_t>(pages.size()));
    if (!page) break;
    pages.push_back(*page);
  }
  prefixes_.add(pool_, m.tenant, m.tokens, pages);
}

bool cache_manager::on_idle() {
  if (context().now() - checked_ < check_interval) return false;
  checked_ = context().now();
  check_integrity();
  return false;
}

void cache_manager::check_integrity() const {
  pool_.check_integrity();
  prefixes_.check_integrity(pool_);
  std::vector<std::uint32_t> owners(pool_.pages_count(), 0);
  for (const auto& [id, s] : sequences_) {
    s.table.check_integrity();
    s.table.for_each_page([&](page_id page) { ++owners[page.value]; });
  }
  for (std::uint32_t page = 0; page < owners.size(); ++page) {
    const std::uint32_t kept = pool_.is_kept(page_id{page}) ? 1 : 0;
    REDLINE_ASSERT(pool_.references(page_id{page}) == owners[page] + kept, "a page has as many references as owners");
  }
}

}  // namespace redline::actors

template class redline::actor::actor_cell<redline::actors::cache_manager>;
