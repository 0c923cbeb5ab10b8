#include "actors/cache_manager.hpp"

namespace redline::actors {

cache_manager::cache_manager(actor::actor_context& context, std::uint32_t pages_count)
    : actor_of(context), pool_(pages_count) {}

void cache_manager::on(const reserve_pages& m) {
  page_grant grant{.batch = m.batch};
  // Everything that shrinks goes first, so that a batch can use what it gives back.
  for (const auto& want : m.wants) {
    auto& table = tables_[want.sequence];
    if (table.token_count() > want.keep_count) table.truncate(pool_, want.keep_count);
  }
  for (const auto& want : m.wants) {
    auto& table = tables_[want.sequence];
    // A table shorter than the scheduler believes means that one of the two lost its memory: it must hear of that.
    if (table.token_count() != want.keep_count || !table.append(pool_, want.append_count)) {
      grant.tables.emplace_back(std::nullopt);
      continue;
    }
    const auto pieces = table.pieces();
    grant.tables.emplace_back(std::vector<kv::piece>(pieces.begin(), pieces.end()));
  }
  grant.free_count = pool_.free_count();
  context().send(context().sender(), grant);
}

void cache_manager::on(const release_pages& m) {
  const auto it = tables_.find(m.sequence);
  if (it == tables_.end()) return;
  it->second.clear(pool_);
  tables_.erase(it);
}

void cache_manager::on(const drop_all_pages&) {
  for (auto& [id, table] : tables_) table.clear(pool_);
  tables_.clear();
}

void cache_manager::check_integrity() const {
  pool_.check_integrity();
  std::uint32_t held = 0;
  for (const auto& [id, table] : tables_) {
    table.check_integrity();
    held += table.held_count();
  }
  REDLINE_ASSERT(held + pool_.free_count() == pool_.pages_count(), "pages are not conserved");
}

}  // namespace redline::actors
