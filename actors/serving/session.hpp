#pragma once

#include "actors/messages/draft_messages.hpp"
#include "actors/messages/edit_messages.hpp"
#include "actors/messages/pool_messages.hpp"
#include "actors/messages/session_messages.hpp"
#include "actors/messages/verify_messages.hpp"
#include "actors/serving/token_log.hpp"
#include "runtime/actor/conversation.hpp"
#include "runtime/actor/offload.hpp"
#include "runtime/actor/system_messages.hpp"
#include "runtime/actor/worker.hpp"
#include "runtime/base/per_tenant.hpp"
#include "runtime/draft/book.hpp"

namespace redline::actors {

class draft_model;
class placer;
class cache_manager;

/// A sequence owned by an edit session and borrowed for one answer; its KV is kept.
struct borrowed_sequence {
  sequence_id sequence;
  round_id last_round;           // already used
  std::uint32_t tokens_max = 0;  // most tokens that the sequence may reach, in any session
  actor::address owner;          // receives sequence_returned
  numerics_id numerics;          // numerics of its worker; unknown outside a pool
};

/// What a session asks of a pool's placer.
struct placement_preferences {
  std::uint64_t model = 0;     // digest of the target model's file; 0 means any
  std::uint64_t affinity = 0;  // answers with the same number belong together; 0 means none
  bool wants_draft = false;    // drafts from a draft model, if there is one
};

/// The actors that a session works with, and how long it waits for them. In a pool the placer names the cache manager
/// and the drafter, and new ones when those are lost; for a borrowed sequence its owner does.
struct session_partners {
  actor::actor_ref<actors::placer> placer;  // if null, `manager` is used for good
  placement_preferences place;
  actor::actor_ref<cache_manager> manager;
  actor::actor_ref<draft_model> drafter;  // if null, no draft model is asked
  /// What tenants' answers taught about drafts; the sessions' thread only. If null, every answer starts from nothing.
  std::shared_ptr<per_tenant<draft::tenant_record>> learned;
  actor::address client;                      // receives session_text and session_finished
  std::optional<borrowed_sequence> borrowed;  // if absent, the session has a sequence of its own
  std::shared_ptr<actor::thread_pool> pool;   // tokenizes long copied spans; if null, the session's own thread does
  microseconds proposal_patience{1'000'000};  // then the round goes on without a draft
  microseconds drafter_retry{5'000'000};      // then a drafter that could not be reached is tried again
  microseconds verdict_retry{2'000'000};      // then the question is repeated
  microseconds silence_max{60'000'000};       // then the session fails
  microseconds place_patience{20'000'000};    // for an answer that has begun, in a pool whose workers are all full
};

/// One answer. Owns the committed log, the only truth; the cache manager, the target and the drafter have copies that
/// can be rebuilt from it at any time. `live` is its main loop; the handlers feed it, and end it when the client gives
/// up. With eviction the log is a window: when it is full, its oldest tokens go, and the next round tells the cache
/// manager.
class session final : public actor::actor_of<session> {
 public:
  using accepts =
      actor::protocol<proposal, verified, log_needed, refused, run_pending, session_placed, no_place, cancel_session,
                      pause_session, session_tick, session_step, actor::job_done, actor::undeliverable>;

  session(actor::actor_context& context, token_log work, session_partners partners);

  void on_start();
  void on(const proposal& m);
  void on(const verified& m) { hear_of_round(m); }
  void on(const log_needed& m) { hear_of_round(m); }
  void on(const run_pending& m) { hear_of_round(m); }
  void on(const refused& m) {
    if (m.sequence == sequence() && is_from_target()) (void)talk_.hear(m);
  }
  void on(const session_placed& m);
  void on(const no_place& m) { (void)talk_.hear(m); }
  void on(const cancel_session&) { leave(); }
  void on(const pause_session& m);
  void on(const session_tick&);
  void on(const session_step& m);
  void on(const actor::job_done& m);
  void on(const actor::undeliverable& m);

 private:
  struct round_draft {
    std::vector<token> tokens;
    std::vector<draft::draft_part> parts;  // cover the tokens
    bool is_span = false;                  // a copied span that the model is asked about
    draft::mtp_request mtp = {};           // for the round after this one
  };

  actor::task<> live();
  actor::task<bool> find_target();
  actor::task<token_log::progress> stream_forced_tokens(token_log::progress step);
  actor::task<std::vector<token>> spell(untokenized_span span);
  actor::task<bool> score_prompt();
  actor::task<const verified*> ask_target();
  actor::task<round_draft> next_draft(draft::book::model_state model);

  [[nodiscard]] bool is_late() const;
  /// Ends the wait for the draft model, whose copy of the log no longer counts from then on.
  void lose_drafter();
  [[nodiscard]] bool can_ask_drafter();
  void tell_drafter(std::uint32_t from, std::uint32_t tokens_max);
  void hear_costs(const proposal& m);
  [[nodiscard]] double drafter_unread() const;
  [[nodiscard]] draft::round_costs costs() const { return draft::costs_of(step_, drafter_cost_, book_->overhead_us()); }
  void tell_book();
  void tell_target(std::uint32_t from);
  void tell_client(const token_log::progress& step);
  void begin_trace(const verified& m, std::uint32_t emitted);
  [[nodiscard]] std::optional<step_trace> trace_of(const token_log::progress& step);
  token_log::progress commit(const verified& m);
  void make_room();
  void count(const verified& m, std::size_t emitted);
  void count_pass(const verified& m);
  void time_round(const verified& m);
  void finish(finish_reason reason, std::optional<failure> why_not = std::nullopt, std::uint32_t retry_after_ms = 0);
  void leave();
  template<class M>
  void hear_of_round(const M& m) {
    // Ignores an answer to another session, from a process that had this one's address before.
    if (m.sequence == sequence() && m.round == round_ && is_from_target()) (void)talk_.hear(m);
  }
  /// A worker that was lost and comes back may answer late, when the session has gone on elsewhere.
  [[nodiscard]] bool is_from_target() const {
    return !numerics_ || actor::process_of(context().sender()) == actor::process_of(partners_.manager.where);
  }
  void ask_for_place(actor::process_number not_process);
  void forget_target();
  /// The numerics that the answer has to go on with; any if unknown.
  [[nodiscard]] numerics_id bound_to() const { return stats_.rounds > 0 ? numerics_ : work_.spec().numerics; }
  [[nodiscard]] sequence_id sequence() const {
    return partners_.borrowed ? partners_.borrowed->sequence : sequence_id{work_.spec().session.value};
  }
  [[nodiscard]] log_tail tail(std::uint32_t from) const;
  [[nodiscard]] sequence_terms terms() const;
  /// How much of the log the target is asked about.
  [[nodiscard]] std::uint32_t asked_count() const { return scored_count_.value_or(work_.log_count()); }

  token_log work_;
  session_partners partners_;
  std::optional<actor::offload> pool_;    // created when first needed
  numerics_id numerics_;                  // numerics of the worker that the placer named
  std::uint32_t places_refused_ = 0;      // refusals before the first token
  std::optional<instant> refused_since_;  // when workers, one after another, began to refuse
  actor::conversation talk_;
  round_id round_{0};
  round_draft draft_;
  std::unique_ptr<draft::book> book_;                     // from the start to the end
  std::uint32_t book_knows_ = 0;                          // tokens of the log that the book has
  static constexpr std::uint32_t places_refused_max = 2;  // then the refusal goes to the client
  std::uint32_t drafter_knows_ = 0;                       // tokens of the log that the drafter was sent
  cost::step_cost drafter_cost_;                          // cost of its passes; unknown at first
  std::uint32_t drafter_read_ = 0;                        // tokens of the log that its model has read
  std::uint32_t drafter_reads_max_ = 0;                   // most tokens that it looks at; 0 if unknown
  std::uint32_t target_knows_ = 0;
  std::optional<std::uint32_t> scored_count_;  // while the prompt is scored, how many tokens are
  // The cache manager has tokens that are not in the log, because a span ended earlier. Until it answers again, only
  // those before them count as known.
  bool target_log_differs_ = false;
  bool target_answered_ = false;                // the cache manager has answered a round of this session
  bool terms_told_ = false;                     // the cache manager has answered a round with terms
  bool admission_told_ = false;                 // session_admitted was sent to the client
  std::vector<scheduler::log_splice> splices_;  // not known to be received by the cache manager
  bool moved_ = false;                          // KV may be moved rather than computed
  std::uint32_t recomputed_before_ = 0;         // those under earlier cache managers; `verified` counts the present
                                                // one's
  bool paused_ = false;
  bool has_line_ = false;  // whether the answer so far has a line
  bool has_left_ = false;
  cost::step_cost step_;  // cost from the last answer
  instant asked_;         // when the present round was last sent to the target
  std::optional<instant> drafter_lost_;
  instant began_;
  session_stats stats_;
  /// With a trace: what the round was, until its tokens are sent, and how many of them the model chose.
  std::optional<step_trace> round_trace_;
  std::uint32_t said_count_ = 0;
};

}  // namespace redline::actors

extern template class redline::actor::actor_cell<redline::actors::session>;
