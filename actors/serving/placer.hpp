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

/// Where in each process of a pool its actors are; the same in all.
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
  /// A worker in this very process, which is always there.
  std::optional<std::pair<actor::process_number, process_card>> own;
  /// Why a process is of no use to this gateway; empty: all are.
  std::function<std::optional<std::string>(const process_card&)> why_unfit;
  actor::address models;  // told of the workers' models (fetch_model, lose_model, model_standing); may be nobody
  microseconds patience{20'000'000};     // sessions wait so long for a worker
  microseconds model_kept{600'000'000};  // a model without workers is offered so long: its sessions wait for one
};

/// Knows the workers of the pool, and for each answer of this gateway where it is made: chooses by scheduler::placement
/// among those that run its model, and after its first token only among those that give the same bits. When a worker is
/// lost or leaves, its answers are told another one at once. Holds nothing that cannot be lost: a session that hears
/// nothing asks again.
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
    std::optional<scheduler_report> report;  // of a target's cache manager
    instant heard;                           // when it came, or reported last
    scheduler_report before;                 // for what rows and passes cost of late, and what it has done since
    bool has_reported = false;
    double row_us = 0, pass_us = 0;
    std::uint64_t kept_revision = 0;  // of what it said that it keeps
    instant leaves_since;             // when it is draining
  };
  struct guest {
    actor::address session;
    place_session asked;                            // with the numerics that it was given
    actor::process_number target = 0, drafter = 0;  // 0: none
    numerics_id numerics;                           // that it was given
    bool is_leaving = false;                        // its worker drains: it goes on there until there is another place
    std::optional<instant> waiting_since;           // without a worker
    std::set<actor::process_number> not_these;      // that it found of no use; until it has to wait
  };

  void meet(actor::process_number process, process_card card);
  void lose(actor::process_number process, const std::string& why);
  void move_guests(actor::process_number from);
  void place_later();
  void place_waiting();
  /// False: nobody takes it now.
  bool place(guest& g);
  bool place_among(guest& g, numerics_id numerics);
  bool place_at_leaving(guest& g);
  void take(guest& g, actor::process_number process);
  void tell(const guest& g, bool ask_again = true);
  void give_up(session_id session);
  void forget_models();
  void tell_standings();
  void count_work(const scheduler_report& before, const scheduler_report& now);
  void note_load(actor::process_number process, const member& m);
  [[nodiscard]] actor::process_number choose_drafter(std::uint64_t vocabulary);
  void ask_status(actor::process_number process);
  /// What the pool lacks, as part of a sentence; empty: workers that are here are loading.
  [[nodiscard]] std::string what_is_missing() const;
  [[nodiscard]] std::vector<std::uint64_t> keys_of(const place_session& asked) const;

  placer_options options_;
  scheduler::placement placement_;
  std::map<actor::process_number, member> members_;
  scheduler_report done_;  // of its totals: what workers did since this gateway knows them
  std::unordered_map<session_id, guest> guests_;
  std::map<std::uint64_t, instant> models_;                         // by digest, and when a worker was there last
  std::map<std::pair<std::uint64_t, std::string>, instant> kinds_;  // the same by digest and numerics
  std::map<std::uint64_t, model_standing> standings_;               // as they were told last
  instant watched_until_;                                           // workers are asked for details
  bool places_are_due_ = false;
  std::uint32_t ticks_ = 0;
  bool has_broker_ = false;
  std::string why_alone_;  // why no broker takes this process
  std::string why_none_;   // why the last process is of no use, where there is no other
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::placer>;
