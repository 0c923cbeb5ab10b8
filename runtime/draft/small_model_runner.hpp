#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "runtime/base/environment.hpp"
#include "runtime/draft/book.hpp"
#include "runtime/draft/prompt_lookup.hpp"
#include "runtime/draft/reading_window.hpp"
#include "runtime/model/transformer.hpp"
#include "runtime/sampling/sampling.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::draft {

/// A request for a draft of the small model.
struct model_request {
  session_id session;
  std::uint64_t asker = 0;  // comes back with the answer
  tenant_id tenant;
  round_id round;
  std::uint32_t from = 0;  // the tail starts here; earlier tokens are known from before
  std::vector<token> tail;
  std::uint32_t prompt_count = 0;
  std::uint32_t tokens_max = 0;  // 0: only bring the KV up to date
  draft_options options;         // assisted: one token after another; else with lookup inside the model
  std::uint32_t round_us = 0;    // what the target's part of a round takes; 0: not known
  std::uint32_t row_ns = 0;      // and one row more in it
  sampling::sampling_params sampling;
};

struct model_answer {
  session_id session;
  std::uint64_t asker = 0;  // whose request it answers
  round_id round;
  graded_draft draft;
  std::uint32_t passes = 0;   // forwards that had a run of this session
  std::uint32_t took_us = 0;  // that its parts of them took, without what read the log; 0: not timed
  cost::step_cost cost;       // of a forward after what the model has read
  std::uint32_t unread = 0;   // tokens that it would have to read before it could draft again
};

/// The small model, its KV, and the drafts it works on: assisted decoding, or prompt lookup inside the model
/// (Blazedit). All jobs share one ragged forward per step. Of a log that is longer than the model's context it reads
/// parts: the beginning, where the text is being copied from, and the end. What it holds of a session is a cache: any
/// of it may be forgotten, and comes back with the next request's log. A draft is made of its own session's tokens
/// alone.
class small_model_runner {
 public:
  struct limits {
    std::uint32_t sessions_max = 1024;          // the longest unused is forgotten beyond this
    std::uint32_t prompt_chunk_rows_max = 256;  // of one session in one forward
    std::uint32_t pages_count = 0;
    std::uint32_t context_max = 0;  // tokens that the model looks at; 0: as many as it was trained for
  };
  /// What it works with.
  struct parts {
    std::unique_ptr<model::transformer> model;
    std::vector<token> end_tokens;                           // end a draft
    cost::cost_model passes;                                 // what is known of their cost
    const environment* clock = nullptr;                      // times passes, and outlives the runner; null: not
    std::shared_ptr<const sampling::token_chooser> chooser;  // null but in benchmarks
  };
  small_model_runner(limits at_most, parts with);

  /// Queues the request, replacing an older one of the session. A log with tokens that the model has no embedding for
  /// is answered at once, without a draft. Returns the number of tokens known of the session's log when the tail does
  /// not join on to it; nothing was queued then.
  std::optional<std::uint32_t> submit(model_request request);
  /// Makes one pass over the jobs; false when nothing is left to do.
  bool step();
  /// The drafts finished since the last call.
  std::vector<model_answer> take_answers();
  void forget(session_id session);

  /// What a forward with one row costs after so many tokens.
  [[nodiscard]] cost::step_cost step_cost_at(std::size_t context) const { return cost::step_cost_at(passes_, context); }
  [[nodiscard]] std::uint32_t context_max() const;
  [[nodiscard]] std::uint64_t passes_count() const { return passes_count_; }
  /// Aborts when pages are lost or held twice.
  void check_integrity() const;

 private:
  /// What is held of a session.
  struct cache {
    tenant_id tenant;
    prompt_lookup log;               // committed tokens, indexed
    std::size_t embedded_count = 0;  // leading ones that the model has an embedding for
    acceptance_record guesses;       // how the model judged what lookup told it
    reading_window window;           // what of the log the model reads
    std::vector<token> tokens;       // of the window, whose KV the table holds, in order
    kv::page_table table;
    std::uint64_t last_used = 0;
  };
  /// A draft that is being made.
  struct job {
    model_request request;
    graded_draft draft;
    std::uint32_t runs_count = 0;  // forwards that extended the draft
    std::uint32_t passes = 0;
    double us = 0;      // that its parts of them took
    double chance = 1;  // by the model's own probabilities, of the whole draft
  };
  struct planned;

  bool plan_run(job& j, std::uint32_t rows_left, planned& out);
  void look_up(const job& j, std::uint32_t rows_left, planned& out) const;
  [[nodiscard]] bool pays_to_go_on(const job& j) const;
  bool make_room(cache& c, session_id owner, std::uint32_t count);
  bool absorb(job& j, const planned& p, std::span<const float> logits);
  void time_pass(std::span<const planned> plans, std::span<const std::size_t> owners, microseconds took);
  void finish(job& j);
  [[nodiscard]] std::size_t count_embedded(std::span<const token> log, std::size_t known) const;
  void drop_job(session_id session);
  void forget_longest_unused();
  [[nodiscard]] bool is_end(token t) const;
  [[nodiscard]] reading_window window_for(const cache& c, std::uint32_t tokens_max) const;

  std::unique_ptr<model::transformer> model_;
  std::vector<token> end_tokens_;
  limits limits_;
  kv::page_pool pool_;
  std::unordered_map<session_id, cache> caches_;
  std::deque<job> jobs_;
  std::vector<model_answer> answers_;
  const environment* clock_;
  std::shared_ptr<const sampling::token_chooser> chooser_;
  cost::cost_model passes_;
  std::uint64_t passes_count_ = 0;
  std::uint64_t use_counter_ = 0;
};

}  // namespace redline::draft
