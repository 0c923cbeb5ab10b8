#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/base/per_tenant.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/draft/draft_options.hpp"
#include "runtime/draft/edit_cursor.hpp"
#include "runtime/draft/prompt_lookup.hpp"
#include "runtime/draft/reading_window.hpp"
#include "runtime/draft/source_chooser.hpp"
#include "runtime/model/sampling.hpp"
#include "runtime/model/transformer.hpp"

namespace redline::draft {

struct engine_limits {
  std::uint32_t sessions_max = 1024;          // the longest unused is forgotten beyond this
  std::uint32_t prompt_chunk_rows_max = 256;  // of one session in one forward
  std::uint32_t pages_count = 0;              // of the draft model's KV
  std::uint32_t context_max = 0;              // tokens that the draft model looks at; 0: as many as it was trained for
};

/// One session's wish for a draft.
struct draft_request {
  session_id session;
  tenant_id tenant;
  round_id round;
  std::uint32_t from = 0;  // the tail starts here; earlier tokens are known from before
  std::vector<token> tail;
  std::vector<token> prediction;  // what the client expects; looked at when the tail starts at 0
  std::uint32_t prompt_count = 0;
  std::uint32_t tokens_max = 0;  // 0: only bring the draft model's KV up to date
  draft_options options;
  cost::step_cost step;  // of the target; prices the draft model's passes in `automatic` drafts
  model::sampling_params sampling;
};

struct draft_answer {
  session_id session;
  round_id round;
  std::vector<token> tokens;
  std::uint32_t passes = 0;       // forwards of the draft model that had a run of this session
  std::vector<draft_part> parts;  // where the tokens are from; their counts add up to tokens
};

/// For benchmarks: what a small model of known quality chooses behind the answer's first `output_index` tokens and in
/// each row of a guess behind them, in place of what it does choose; none: as it does.
struct replayed_choices {
  std::vector<token> tokens;  // one more than the guess has
  float sure = 0;             // the probability that it is taken to give its own token
};
using draft_replay =
    std::function<replayed_choices(session_id session, std::uint32_t output_index, std::span<const token> guess)>;

/// Drafts for many sessions at once from prompt lookup, the client's prediction, a small model, or lookup inside the
/// small model (Blazedit). All sessions that need the model share one ragged forward per step; drafts without the model
/// are ready at once. Of a log that is longer than the model's context the model reads parts: its beginning, where the
/// text is being copied from, and its end. What it holds of a session (its log, the prediction, what it learned, the
/// model's KV) is a cache: any of it may be forgotten, and comes back with the next request's log. A draft is made of
/// its own session's tokens alone.
class draft_engine {
 public:
  /// small_model may be null: then assisted and blazedit drafts are made by lookup alone, automatic ones without it.
  /// end_tokens end a draft. clock: times the small model's passes, and outlives the engine; null: they are not timed.
  /// passes: what is known of their cost.
  draft_engine(std::unique_ptr<model::transformer> small_model, std::vector<token> end_tokens, engine_limits limits,
               const environment* clock = nullptr, draft_replay replay = {}, cost::cost_model passes = {});

  /// Queues the wish, replacing an older one of the session. A log with tokens that the small model has no embedding
  /// for gets its draft from lookup alone. Returns the number of tokens known of the session's log when
  /// the tail does not join on to it; nothing was queued then.
  std::optional<std::uint32_t> submit(draft_request request);
  /// Makes one pass over the queue; false when nothing is left to do.
  bool step();
  /// The drafts finished since the last call.
  std::vector<draft_answer> take_answers();
  void forget(session_id session);

  [[nodiscard]] bool has_model() const { return model_ != nullptr; }
  [[nodiscard]] std::uint64_t passes_count() const { return passes_count_; }
  /// Aborts when pages are lost or held twice.
  void check_integrity() const;

 private:
  /// What a source could have given in the last round, to be compared with what came.
  struct guess_made {
    draft_offer offer;
    std::vector<token> tokens;
    double model_passes = 0;
    bool tried = false;  // it was the draft
  };
  /// When a draft was handed to the target, and what was known then.
  struct handed_draft {
    instant at;
    std::size_t log_count = 0;
    std::size_t tokens_count = 0;
    std::uint64_t use = 0;  // of the engine
  };
  struct session_state {
    tenant_id tenant;
    text::prompt_lookup log;         // the committed tokens, indexed
    std::size_t embedded_count = 0;  // leading tokens of the log that the small model has an embedding for
    text::edit_cursor prediction;    // fed with the answer's tokens before the index `predicted_to` of the log
    std::size_t predicted_to = 0;
    source_chooser chooser;
    source_rivalry rivalry;
    std::array<source_rivalry, grades_count> model_rivalry;  // of the model with lookup, by the copy's grade
    std::vector<guess_made> guesses;  // of what comes behind the first `guessed_at` tokens of the log
    std::size_t guessed_at = 0;
    reading_window window;      // what of the log the small model reads
    std::vector<token> cached;  // tokens of the window whose KV the table holds, in order
    std::array<double, grades_count>
        looked_up_lengths{};  // tokens to look up for the small model by grade; 0: not known
    kv::page_table table;
    std::uint64_t last_used = 0;
    std::optional<handed_draft> handed;  // the last one, when nobody else wanted a draft then
  };
  struct job {
    draft_request request;  // its method is not `automatic` but what that came to
    std::vector<token> draft;
    std::vector<draft_part> parts;
    bool chosen = false;           // by the session's chooser, which wants to know what became of it
    std::uint32_t matched = 0;     // last tokens that spoke for the copy the model was given, when chosen
    std::uint32_t runs_count = 0;  // forwards that extended the draft
    std::uint32_t passes = 0;
    double us = 0;      // that its parts of them took
    double chance = 1;  // by the model's own probabilities, of the whole draft
  };
  struct planned;

  void take_log(session_state& s, draft_request& r);
  static void follow_prediction(session_state& s, const draft_request& r);
  static void learn(session_state& s);
  static void learn_ready(session_state& s, const draft_request& r);
  struct ready_drafts;
  [[nodiscard]] static ready_drafts ready(const session_state& s, const text::edit_cursor& prediction,
                                          std::span<const token> pending, const draft_options& options,
                                          std::uint32_t most);
  [[nodiscard]] static double expected_of_model(const session_state& s, const draft_offer& looked_up);
  [[nodiscard]] bool can_use_model(const session_state& s) const;
  [[nodiscard]] draft_prices prices_for(const session_state& s, const draft_request& r) const;
  [[nodiscard]] reading_window window_for(const session_state& s, const draft_request& r) const;
  void choose_source(session_state& s, job& j);
  static void draft_without_model(session_state& s, job& j);
  static void add_ready(job& j, const ready_drafts& drafts, std::size_t count);
  static void add(job& j, source from, std::uint8_t grade, std::span<const token> tokens);
  static void begin_guesses(session_state& s);
  static void guess(session_state& s, const draft_offer& offer, std::span<const token> tokens, bool tried);
  [[nodiscard]] bool has_embedding(token t) const;
  [[nodiscard]] bool is_end(token t) const;
  void note_answer(session_state& s, const draft_request& r);
  void finish(const job& j);
  bool plan_run(job& j, std::uint32_t rows_left, planned& out);
  void look_up_for_model(session_state& s, const job& j, std::uint32_t rows_left, planned& out) const;
  [[nodiscard]] bool pays_to_go_on(const job& j) const;
  [[nodiscard]] std::uint32_t context_max() const;
  bool make_room(session_state& s, session_id owner, std::uint32_t count);
  void time_pass(std::span<const planned> plans, std::span<const std::size_t> owners, microseconds took);
  bool absorb(job& j, const planned& p, std::span<const float> logits);
  void forget_longest_unused();

  std::unique_ptr<model::transformer> model_;
  std::vector<token> end_tokens_;
  engine_limits limits_;
  kv::page_pool pool_;
  std::unordered_map<session_id, session_state> sessions_;
  per_tenant<source_chooser> typical_;  // what paid in each tenant's sessions
  std::deque<job> jobs_;
  std::vector<draft_answer> answers_;
  const environment* clock_;
  draft_replay replay_;
  cost::cost_model passes_;  // of the small model
  double round_us_ = 0;      // what a round takes beside the target's pass, lately
  std::uint32_t rounds_count_ = 0;
  std::uint64_t use_counter_ = 0;
  std::uint64_t passes_count_ = 0;
};

}  // namespace redline::draft
