#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/messages/cache_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/kv/prefix_index.hpp"

namespace redline::actors {

/// Owns the bookkeeping of one model's KV pages in one process. Only this actor hands pages out or takes them back, so
/// "free + held = all" can be checked in one place. Whole pages of beginnings stay when their sequence is over, for
/// others of its tenant that begin alike, until somebody needs the pages. Never reads or writes the bytes in a page.
class cache_manager final : public actor::actor_of<cache_manager> {
 public:
  using accepts =
      actor::protocol<reserve_pages, release_pages, drop_all_pages, splice_pages, adopt_prefix, offer_prefix>;

  cache_manager(actor::actor_context& context, std::uint32_t pages_count);

  void on(const reserve_pages& m);
  void on(const release_pages& m);
  void on(const drop_all_pages& m);
  void on(const splice_pages& m);
  void on(const adopt_prefix& m);
  void on(const offer_prefix& m);
  bool on_idle();

  /// Aborts when a page is lost or held twice.
  void check_integrity() const;
  /// Pages that no sequence holds.
  [[nodiscard]] std::uint32_t free_count() const { return pool_.free_count() + pool_.spare_count(); }

 private:
  struct sequence {
    kv::page_table table;
    std::uint32_t revision = 0;  // splices so far
  };

  void tidy_up(const reserve_pages& m);
  [[nodiscard]] page_use use_of(const kv::page_table& table) const;
  [[nodiscard]] std::uint32_t shared_count() const { return pool_.kept_count() - pool_.spare_count(); }

  kv::page_pool pool_;
  kv::prefix_index prefixes_;
  std::unordered_map<sequence_id, sequence> sequences_;
  std::vector<kv::token_move> moves_;  // for the next grant
  std::optional<page_grant> last_;     // to be repeated when its batch is asked for again
  instant checked_{};
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::cache_manager>;
