#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/messages/cache_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/messages/status_messages.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "scheduler/placement.hpp"

namespace redline::actors {

/// Where the actors of each process of a pool are; the same in all processes.
struct pool_layout {
  std::uint16_t manager_worker = 0, drafter_worker = 0;
  std::uint32_t manager = 0, drafter = 0;
  std::uint16_t header_worker = 0;
  std::uint32_t header = 0;
  [[nodiscard]] actor::address manager_in(actor::process_number p) const {
    return actor::make_address(p, manager_worker, manager);
  }
  [[nodiscard]] actor::address drafter_in(actor::process_number p) const {
    return actor::make_address(p, drafter_worker, drafter);
  }
};

struct placer_options {
  pool_layout layout;
  /// A worker in this process, which is always there.
  std::optional<std::pair<actor::process_number, process_card>> own;
  /// Why this gateway cannot use a process. An empty function accepts all.
  std::function<std::optional<std::string>(const process_card&)> why_unfit;
  actor::address models;  // notified of the workers' models (fetch_model, lose_model, model_standing); may be null
  microseconds patience{20'000'000};     // how long sessions wait for a worker
  microseconds model_kept{600'000'000};  // how long a model without workers is offered, while sessions wait
};

/// Knows the workers of the pool, and chooses for each answer of this gateway where it is computed, by
/// scheduler::placement: among the workers that run its model, and after its first token only among those that give the
/// same bits. When a worker is lost or leaves, its answers get another one at once. Has no state that cannot be lost: a
/// session that receives nothing asks again.
class placer final : public actor::actor_of<placer> {
 public:
  using accepts = actor::protocol<place_session, leave_place, scheduler_report, kept_prefixes, report_status,
                                  places_due, placer_tick, actor::peer_state, actor::undeliverable>;

  placer(actor::actor_context& context, placer_options options);

  void on_start();
  void on(const place_session& m);
  void on(const leave_place& m);
  void on(const scheduler_report& m);
  void on(const kept_prefixes& m);
  void on(const report_status& m);
  void on(const places_due&);
  void on(const placer_tick&);
  void on(const actor::peer_state& m);
  void on(const actor::undeliverable& m);

 private:
  struct member {
    process_card card;
    std::optional<std::string> unfit;
    std::optional<scheduler_report> report;  // the last one of a target's cache manager
    instant heard;                           // when it joined, or last reported
    scheduler_report before;                 // the previous report, from which recent costs and new work are computed
    bool has_reported = false;
    double row_us = 0, pass_us = 0;
    std::uint64_t kept_revision = 0;  // revision of its list of cached prefixes
    instant leaves_since;             // only when it is draining
  };
  struct placed_session {
    actor::address session;
    place_session asked;                            // the latest request
    actor::process_number target = 0, drafter = 0;  // 0 if there is none
    numerics_id numerics;                           // those that it was given
    bool is_leaving = false;                        // its worker drains: it goes on there until there is another
    std::optional<instant> waiting_since;           // set while it has no worker
    std::set<actor::process_number> not_these;      // workers that it could not use; cleared at each tick
  };

  void meet(actor::process_number process, process_card card);
  void lose(actor::process_number process, const std::string& why);
  void move_guests(actor::process_number from);
  void place_later();
  void place_waiting();
  /// Returns false if no worker takes it now.
  bool place(placed_session& g);
  bool place_among(placed_session& g, numerics_id numerics);
  bool place_at_leaving(placed_session& g);
  void take(placed_session& g, actor::process_number process);
  void tell(const placed_session& g, bool ask_again = true);
  void give_up(session_id session);
  void forget_models();
  void tell_standings();
  void count_work(const scheduler_report& before, const scheduler_report& now);
  void note_load(actor::process_number process, const member& m);
  [[nodiscard]] actor::process_number choose_drafter(std::uint64_t vocabulary);
  void ask_status(actor::process_number process);
  /// What the pool lacks, as part of a sentence; empty if workers are loading.
  [[nodiscard]] std::string what_is_missing() const;
  [[nodiscard]] std::vector<std::uint64_t> keys_of(const place_session& asked) const;

  placer_options options_;
  scheduler::placement placement_;
  std::map<actor::process_number, member> members_;
  scheduler_report done_;  // totals of what workers did while this gateway knew them
  std::unordered_map<session_id, placed_session> guests_;
  std::map<std::uint64_t, instant> models_;                         // by digest, when a worker last had it
  std::map<std::pair<std::uint64_t, std::string>, instant> kinds_;  // the same by digest and numerics
  std::map<std::uint64_t, model_standing> standings_;               // as last reported
  instant watched_until_;                                           // until then workers are asked for details
  bool places_are_due_ = false;
  std::uint32_t ticks_ = 0;
  bool has_broker_ = false;
  std::string why_alone_;  // why no broker accepts this process
  std::string why_none_;   // why the last unusable or lost process cannot serve
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::placer>;
