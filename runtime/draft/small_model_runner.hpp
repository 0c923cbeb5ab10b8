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

/// A request for a draft from the small model.
struct model_request {
  session_id session;
  std::uint64_t asker = 0;  // comes back with the answer
  tenant_id tenant;
  round_id round;
  std::uint32_t from = 0;  // start of the tail; earlier tokens are already known
  std::vector<token> tail;
  std::uint32_t prompt_count = 0;
  std::uint32_t tokens_max = 0;  // 0 means only to bring the KV up to date
  draft_options options;         // for assisted, one token after another; else with lookup inside the model
  std::uint32_t round_us = 0;    // the target's part of a round; 0 if unknown
  std::uint32_t row_ns = 0;      // the cost of one more row in it
  sampling::sampling_params sampling;
};

struct model_answer {
  session_id session;
  std::uint64_t asker = 0;  // from the request
  round_id round;
  graded_draft draft;
  std::uint32_t passes = 0;   // forward passes that had a run of this session
  std::uint32_t took_us = 0;  // time for its parts of them, without reading the log; 0 if not timed
  cost::step_cost cost;       // cost of a forward pass after what the model has read
  std::uint32_t unread = 0;   // tokens that it would have to read before the next draft
};

/// The small model, its KV, and the drafts in progress: assisted decoding, or prompt lookup inside the model
/// (Blazedit). All jobs share one ragged forward pass per step. If a log is longer than the model's context, the model
/// reads parts of it: the beginning, the surroundings of the copied position, and the end. The state of a session is a
/// cache: any of it may be dropped and returns with the next request's log. A draft is computed only from its own
/// session's tokens.
class small_model_runner {
 public:
  struct limits {
    std::uint32_t sessions_max = 1024;          // beyond it the least recently used is dropped
    std::uint32_t prompt_chunk_rows_max = 256;  // rows of one session in one forward pass
    std::uint32_t pages_count = 0;
    std::uint32_t context_max = 0;  // tokens that the model reads; 0 means its trained context
  };
  /// The parts that the runner works with.
  struct parts {
    std::unique_ptr<model::transformer> model;
    std::vector<token> end_tokens;       // tokens that end a draft
    cost::cost_model passes;             // what is known about the cost of passes
    const environment* clock = nullptr;  // times passes and must outlive the runner; null for no timing
    std::shared_ptr<const sampling::token_chooser> chooser;  // null except in benchmarks
  };
  small_model_runner(limits at_most, parts with);

  /// Queues the request, replacing an older one of the session. A log with tokens for which the model has no embedding
  /// is answered at once, without a draft. If the tail does not follow the known part of the session's log, queues
  /// nothing and returns that part's length.
  std::optional<std::uint32_t> submit(model_request request);
  /// Makes one pass over the jobs; returns false if nothing is left to do.
  bool step();
  /// The drafts finished since the last call.
  std::vector<model_answer> take_answers();
  void forget(session_id session);

  /// The cost of a forward pass with one row after this many tokens.
  [[nodiscard]] cost::step_cost step_cost_at(std::size_t context) const { return cost::step_cost_at(passes_, context); }
  [[nodiscard]] std::uint32_t context_max() const;
  [[nodiscard]] std::uint64_t passes_count() const { return passes_count_; }
  /// Aborts if pages are lost or owned twice.
  void check_integrity() const;

 private:
  /// The cached state of a session.
  struct cache {
    tenant_id tenant;
    prompt_lookup log;               // committed tokens, indexed
    std::size_t embedded_count = 0;  // number of leading tokens with an embedding in the model
    acceptance_record guesses;       // how the model judged lookup's guesses
    reading_window window;           // the part of the log that the model reads
    std::vector<token> tokens;       // tokens of the window whose KV the table contains, in order
    kv::page_table table;
    std::uint64_t last_used = 0;
  };
  /// A draft in progress.
  struct job {
    model_request request;
    graded_draft draft;
    std::uint32_t runs_count = 0;  // forward passes that extended the draft
    std::uint32_t passes = 0;
    double us = 0;      // time for its parts of them
    double chance = 1;  // chance of the whole draft, by the model's own probabilities
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
