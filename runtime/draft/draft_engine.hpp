#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/per_tenant.hpp"
#include "runtime/draft/draft_session.hpp"
#include "runtime/draft/small_model_runner.hpp"

namespace redline::draft {

struct engine_limits {
  std::uint32_t sessions_max = 1024;  // the longest unused is forgotten beyond this
  small_model_runner::limits model;
};

/// What a drafter with a small model works with.
struct engine_model {
  std::unique_ptr<model::transformer> model;
  std::vector<token> end_tokens;                        // end a draft
  cost::cost_model passes;                              // what is known of their cost
  const environment* clock = nullptr;                   // times passes and rounds, and outlives the engine; null: not
  std::shared_ptr<const model::token_chooser> chooser;  // null but in benchmarks
};

/// Drafts for many sessions at once from prompt lookup, the client's prediction, a small model, or lookup inside the
/// small model (Blazedit). All sessions that need the model share one ragged forward per step; drafts without the model
/// are ready at once. What it holds of a session is a cache: any of it may be forgotten, and comes back with the next
/// request's log. A draft is made of its own session's tokens alone.
class draft_engine {
 public:
  /// Without a model assisted and blazedit drafts are made by lookup alone, automatic ones by lookup and prediction.
  explicit draft_engine(engine_limits limits = {}, engine_model small = {});

  /// Queues the request, replacing an older one of the session. A log with tokens that the small model has no embedding
  /// for gets its draft from lookup alone. Returns the number of tokens known of the session's log when
  /// the tail does not join on to it; nothing was queued then.
  std::optional<std::uint32_t> submit(draft_request request);
  /// Makes one pass over the queue; false when nothing is left to do.
  bool step();
  /// The drafts finished since the last call.
  std::vector<draft_answer> take_answers();
  void forget(session_id session);

  [[nodiscard]] bool has_model() const { return runner_.has_value(); }
  [[nodiscard]] std::uint64_t passes_count() const { return runner_ ? runner_->passes_count() : 0; }
  /// Aborts when pages are lost or held twice.
  void check_integrity() const;

 private:
  /// When a draft was handed to the target, and what was known then.
  struct handed_draft {
    instant at;
    std::size_t log_count = 0;
    std::size_t tokens_count = 0;
    std::uint64_t use = 0;  // of the engine
  };
  struct entry {
    draft_session drafts;
    std::size_t embedded_count = 0;  // leading tokens of the log that the small model has an embedding for
    std::uint64_t last_used = 0;
    std::optional<handed_draft> handed;  // the last one, when nobody else wanted a draft then
  };

  [[nodiscard]] bool can_use_model(const entry& e) const;
  [[nodiscard]] round_prices prices_for(const draft_request& r, std::size_t models_context) const;
  [[nodiscard]] bool is_for_model(entry& e, draft_request& r, graded_draft& ready);
  void time_round(entry& e, const draft_request& r);
  void finish(const draft_request& r, const graded_draft& draft, std::uint32_t passes, bool is_alone);
  void forget_longest_unused();

  engine_limits limits_;
  const environment* clock_;
  std::optional<small_model_runner> runner_;
  std::unordered_map<session_id, entry> sessions_;
  per_tenant<tenant_drafts> tenants_;
  std::vector<draft_answer> answers_;
  double round_us_ = 0;  // what a round takes beside the target's pass, lately
  std::uint64_t use_counter_ = 0;
};

}  // namespace redline::draft
