#include "actors/cache_manager.hpp"

#include <utility>

namespace redline::actors {

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
    const bool known = table.token_count() == want.keep_count && revision == want.revision && want.at <= want.keep_count;
    if (!known || !table.insert(pool_, want.at, want.append_count)) {
      grant.tables.emplace_back(std::nullopt);
    } else {
      grant.tables.emplace_back(table.prefix(want.at + want.append_count));
    }
    grant.uses.push_back({table.held_count(), table.room(pool_)});
  }
  grant.free_count = pool_.free_count();
  grant.moves = std::exchange(moves_, {});
  last_ = std::move(grant);
  context().send(context().sender(), *last_);
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
  moves_.clear();
  last_.reset();
}

// A splice of a table that is not there, or is another, is left out: the next reservation names a revision that the table
// does not have, and all is computed anew.
void cache_manager::on(const splice_pages& m) {
  const auto it = sequences_.find(m.sequence);
  if (it == sequences_.end()) return;
  auto& [table, revision] = it->second;
  table.truncate(pool_, m.keep_count);
  const std::uint32_t count = table.token_count();
  if (count != m.keep_count || m.at > count || m.removed_count > count - m.at || revision + 1 != m.revision) return;
  revision = m.revision;
  table.splice(pool_, m.at, m.removed_count, m.shift, kv::worth_after(m.policy));
  if (m.policy != kv::splice_policy::eager) return;
  const auto moves = table.settle(pool_, m.at);
  moves_.insert(moves_.end(), moves.begin(), moves.end());
}

void cache_manager::check_integrity() const {
  pool_.check_integrity();
  std::uint32_t held = 0;
  for (const auto& [id, s] : sequences_) {
    s.table.check_integrity();
    held += s.table.held_count();
  }
  REDLINE_ASSERT(held + pool_.free_count() == pool_.pages_count(), "pages are not conserved");
}

}  // namespace redline::actors
