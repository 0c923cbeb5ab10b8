#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "actors/messages/cache_messages.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/kv/kept_list.hpp"
#include "runtime/kv/page_pool.hpp"
#include "runtime/kv/page_table.hpp"
#include "runtime/kv/prefix_index.hpp"

namespace redline::actors {

class target_model;

/// Owns the bookkeeping of one model's KV pages: page tables, free pages, known prefixes. The scheduler's batches pass
/// through it on their way to the target model and get their tables here. Whole pages of prefixes stay when their
/// sequence is over, for others of its tenant, until pages are needed. Never reads or writes the bytes in a page.
class cache_manager final : public actor::actor_of<cache_manager> {
 public:
  using accepts =
      actor::protocol<place_batch, release_pages, adopt_prefix, offer_prefix, read_kept, actor::undeliverable>;

  /// Told of what becomes known and is forgotten, in order; it may be nobody.
  using listener = std::function<void(const std::vector<kv::prefix_change>&)>;
  cache_manager(actor::actor_context& context, kv::pool_size size, actor::actor_ref<target_model> target,
                listener changes = {});

  void on_start();
  void on(const place_batch& m);
  void on(const release_pages& m);
  void on(const adopt_prefix& m);
  void on(const offer_prefix& m);
  void on(const read_kept& m);
  void on(const actor::undeliverable& m);
  bool on_idle();

  /// Aborts when a page is lost or held twice.
  void check_integrity() const;
  /// Pages that are looked at in one go, so that nobody waits for a check of all; of each kind: the pool's, those of
  /// tables (and whole tables), known ones.
  static constexpr std::uint32_t check_pages_max = 4096;
  /// Pages, of any kind, that checks between messages have looked at.
  [[nodiscard]] std::uint64_t checked_count() const { return checked_count_; }
  /// Pages that no sequence holds.
  [[nodiscard]] std::uint32_t free_count() const { return pool_.free_count() + pool_.spare_count(); }

 private:
  void enter(std::uint64_t epoch);
  void place(const place_batch& m);
  void tell_changes();
  void check_sums() const;
  void check_some();
  [[nodiscard]] bool apply(const table_change& change);
  [[nodiscard]] std::vector<sequence_id> hold_windows(const place_batch& m);
  void compact_fragmented(const place_batch& m);
  [[nodiscard]] std::uint64_t pages_needed(const place_batch& m) const;
  void hold(const place_batch& m, bool tables_lost, std::vector<sequence_id> windows_lost = {});
  [[nodiscard]] std::uint32_t window_free_count() const;
  [[nodiscard]] page_report report(const place_batch& m) const;

  kv::page_pool pool_;
  actor::actor_ref<target_model> target_;
  std::uint64_t epoch_ = 0;
  std::uint64_t passed_on_ = 0;  // the last batch that went to the target model
  actor::address scheduler_;     // who sent it
  kv::prefix_index prefixes_;
  kv::kept_list kept_;  // as it was told to gateways
  std::optional<instant> kept_at_;
  std::unordered_map<sequence_id, kv::page_table> tables_;
  std::vector<kv::token_move> moves_;  // for the next batch that is passed on
  instant checked_{};
  std::uint64_t checked_count_ = 0;
  // How far the checks have come.
  std::uint32_t next_page_ = 0;
  std::vector<sequence_id> next_tables_;
  kv::prefix_index::check_progress next_known_;
  listener listener_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::cache_manager>;
