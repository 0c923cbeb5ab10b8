#pragma once

#include "actors/messages/draft_messages.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "actors/serving/token_log.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"

namespace redline::actors {

class draft_model;
class verify_scheduler;

/// A sequence owned by an edit session and borrowed for one answer; its KV is kept.
struct borrowed_sequence {
  sequence_id sequence;
  round_id last_round;           // used already
  std::uint32_t tokens_max = 0;  // that the sequence may come to hold, in any session
  actor::address owner;          // told sequence_returned
};

/// Whom a session works with, and how long it waits for them.
struct session_partners {
  actor::actor_ref<verify_scheduler> scheduler;
  actor::actor_ref<draft_model> drafter;      // nobody: every round goes without a draft
  actor::actor_ref<draft_model> stand_in;     // drafts while the drafter cannot be reached; may be nobody
  actor::address client;                      // told session_text and session_finished
  std::optional<borrowed_sequence> borrowed;  // else the session has a sequence of its own
  microseconds proposal_patience{1'000'000};  // then the round goes on without a draft
  microseconds drafter_retry{5'000'000};      // then a drafter that could not be reached is tried again
  microseconds verdict_retry{2'000'000};      // then the question is repeated
  microseconds silence_max{60'000'000};       // then the session fails
};

/// One answer. Owns the committed log, the only truth; the caches of the scheduler, the target and the drafter are
/// copies of it and can be rebuilt from it at any time. Drives rounds: propose, verify, commit, stream. Lives until the
/// answer is complete, fails, or is cancelled. With eviction the log is a window: when it is full, its oldest tokens
/// go, and the next round tells the scheduler.
class session final : public actor::actor_of<session> {
 public:
  using accepts = actor::protocol<proposal, verified, log_needed, refused, run_pending, cancel_session, pause_session,
                                  session_tick, actor::undeliverable>;

  session(actor::actor_context& context, token_log work, session_partners partners);

  void on_start();
  void on(const proposal& m);
  void on(const verified& m);
  void on(const log_needed& m);
  void on(const refused& m);
  void on(const run_pending& m);
  void on(const cancel_session& m);
  void on(const pause_session& m);
  void on(const session_tick& m);
  void on(const actor::undeliverable& m);

 private:
  enum class phase : std::uint8_t { proposing, verifying, paused, over };

  void tell_client(const token_log::progress& step);
  void next_round();
  [[nodiscard]] actor::actor_ref<draft_model> drafter() const;
  void lose_drafter();
  void ask_drafter(std::uint32_t from, std::uint32_t tokens_max);
  void ask_target(std::uint32_t from);
  void make_room();
  void follow_width(std::uint32_t verified_count);
  void count(const verified& m, std::size_t emitted);
  void finish(finish_reason reason, std::optional<failure> why_not = std::nullopt, std::uint32_t retry_after_ms = 0);
  void leave();
  [[nodiscard]] sequence_id sequence() const {
    return partners_.borrowed ? partners_.borrowed->sequence : sequence_id{work_.spec().session.value};
  }
  [[nodiscard]] log_tail tail(std::uint32_t from) const;

  token_log work_;
  session_partners partners_;
  phase phase_ = phase::verifying;
  round_id round_{0};
  std::vector<token> draft_;
  std::vector<draft::draft_part> parts_;  // of draft_, perhaps of some tokens more
  static constexpr std::uint32_t width_min = 8;
  static constexpr std::uint32_t width_max = 1U << 16;
  std::uint32_t width_ = width_max;  // tokens to ask of the drafter
  std::uint32_t drafter_knows_ = 0;  // tokens of the log that the drafter was sent
  std::uint32_t target_knows_ = 0;
  // The scheduler holds tokens that are not in the log, where a span ended before it did: until it answers again, only
  // what is before them counts as known.
  bool target_strayed_ = false;
  bool draft_is_span_ = false;
  std::vector<log_splice> splices_;      // what the scheduler has not been heard to know of
  bool moved_ = false;                   // KV may be moved rather than computed
  std::uint32_t recomputed_before_ = 0;  // by schedulers that are gone; the present one counts in `verified`
  bool pause_wanted_ = false;
  cost::step_cost step_;  // of the last answer
  std::optional<instant> drafter_lost_;
  instant began_;
  instant asked_;  // when the current question was last put
  instant heard_;  // when the other side last showed signs of life
  session_stats stats_;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::session>;
