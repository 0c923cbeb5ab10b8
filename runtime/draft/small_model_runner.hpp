#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/cost/cost_model.hpp"
#include "runtime/draft/draft_session.hpp"
#include "runtime/draft/reading_window.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::draft {

/// A draft that the small model makes.
struct model_job {
  draft_request request;                   // assisted or blazedit
  const draft_session* session = nullptr;  // outlives the job
  double round_us = 0;                     // what the target's part of a round takes, if its step_cost is known
  graded_draft draft;
  std::uint32_t runs_count = 0;  // forwards that extended the draft
  std::uint32_t passes = 0;
  double us = 0;      // that its parts of them took
  double chance = 1;  // by the model's own probabilities, of the whole draft
};

/// The small model, its KV, and the drafts it works on. All jobs share one ragged forward per step. Of a log that is
/// longer than the model's context it reads parts: the beginning, where the text is being copied from, and the end. A
/// session's KV is a cache and may be forgotten at any time.
class small_model_runner {
 public:
  struct limits {
    std::uint32_t prompt_chunk_rows_max = 256;  // of one session in one forward
    std::uint32_t pages_count = 0;
    std::uint32_t context_max = 0;  // tokens that the model looks at; 0: as many as it was trained for
  };
  /// end_tokens end a draft. clock: times the passes, and outlives the runner; null: they are not timed. passes: what
  /// is known of their cost. chooser: null but in benchmarks.
  small_model_runner(std::unique_ptr<model::transformer> small_model, std::vector<token> end_tokens, limits at_most,
                     const environment* clock, std::shared_ptr<const model::token_chooser> chooser,
                     cost::cost_model passes);

  /// A job of the same session is replaced.
  void submit(model_job job);
  /// Makes one pass over the jobs and returns those that are done.
  std::vector<model_job> step();
  [[nodiscard]] bool is_idle() const { return jobs_.empty(); }
  void drop_job(session_id session);
  /// The session's log is another from this token on.
  void cut(session_id session, std::uint32_t from);
  void forget(session_id session);

  /// Leading tokens of the log that the model has an embedding for, if `known` are known to have one.
  [[nodiscard]] std::size_t count_embedded(std::span<const token> log, std::size_t known) const;
  /// What it would have to read for a draft, and after how many tokens it would stand.
  struct reading {
    std::size_t unread = 0;
    std::size_t context = 0;
  };
  [[nodiscard]] reading reading_for(const draft_session& s, const draft_request& r) const;
  [[nodiscard]] cost::step_cost step_cost_at(std::size_t context) const { return cost::step_cost_at(passes_, context); }
  /// A job's time in forwards with one row.
  [[nodiscard]] double passes_of(const model_job& job) const;
  [[nodiscard]] std::uint64_t passes_count() const { return passes_count_; }
  /// Aborts when pages are lost or held twice.
  void check_integrity() const;

 private:
  struct cache {
    reading_window window;      // what of the log the model reads
    std::vector<token> tokens;  // of the window, whose KV the table holds, in order
    kv::page_table table;
    std::uint64_t last_used = 0;
  };
  struct planned;

  bool plan_run(model_job& j, std::uint32_t rows_left, planned& out);
  void look_up(const model_job& j, std::uint32_t rows_left, planned& out) const;
  [[nodiscard]] bool pays_to_go_on(const model_job& j) const;
  bool make_room(cache& c, session_id owner, std::uint32_t count);
  bool absorb(model_job& j, const planned& p, std::span<const float> logits);
  void time_pass(std::span<const planned> plans, std::span<const std::size_t> owners, microseconds took);
  [[nodiscard]] bool is_end(token t) const;
  [[nodiscard]] std::uint32_t context_max() const;
  [[nodiscard]] reading_window window_for(const reading_window& now, const draft_session& s,
                                          std::uint32_t tokens_max) const;

  std::unique_ptr<model::transformer> model_;
  std::vector<token> end_tokens_;
  limits limits_;
  kv::page_pool pool_;
  std::unordered_map<session_id, cache> caches_;
  std::deque<model_job> jobs_;
  const environment* clock_;
  std::shared_ptr<const model::token_chooser> chooser_;
  cost::cost_model passes_;
  std::uint64_t passes_count_ = 0;
  std::uint64_t use_counter_ = 0;
};

}  // namespace redline::draft
