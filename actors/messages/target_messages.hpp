#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "runtime/actor/protocol.hpp"
#include "runtime/cost/expert_union.hpp"
#include "runtime/draft/mtp_source.hpp"
#include "runtime/grammar/constraint.hpp"
#include "runtime/kv/storage.hpp"
#include "runtime/sampling/sampling.hpp"

namespace redline::actors {

/// One run of a batch as the target model needs it.
struct batch_run {
  sequence_id sequence;
  std::vector<token> tokens;
  position first_position = 0;
  kv::run_memory memory;  // where its keys and values are stored
  std::uint32_t logits_begin = 0;
  std::uint32_t draft_count = 0;  // the last draft_count tokens are a draft to check
  std::uint32_t prompt_count = 0;
  std::vector<token> latest;    // end of the output in the log before the draft, where bans depend on it
  std::uint64_t log_count = 0;  // length of that log, including evicted tokens
  sampling::sampling_params sampling;
  std::optional<std::uint32_t> logprobs;
  grammar::constraint grammar;                // what may follow that log; only with rows that want logits
  std::uint64_t grammar_name = 0;             // the target model's name for it, once it has had its text
  std::vector<sampling::token_count> counts;  // what penalties need of that log: each distinct token once
  std::optional<token> after_draft;           // the draft's next token, if the pass has no row for it; with a grammar
  draft::mtp_request mtp;                     // with rows that want logits
  bool scores_draft = false;                  // the whole draft is accepted, and its log-probabilities are the answer
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.tokens, self.first_position, self.memory, self.logits_begin, self.draft_count,
                    self.prompt_count, self.latest, self.log_count, self.sampling, self.logprobs, self.grammar,
                    self.counts, self.scores_draft, self.grammar_name, self.after_draft, self.mtp);
  }
};

/// One forward pass, which the target model answers with `batch_done`.
struct forward_batch {
  static constexpr actor::message_id id{0x0419};  // 0x0404, 0x0412, 0x0413 and 0x0417 were older forms
  static constexpr std::string_view name = "forward_batch";

  std::uint64_t batch = 0;
  std::vector<batch_run> runs;
  std::vector<kv::token_move> moves;   // carried out before the pass, in order
  std::vector<kv::state_copy> copies;  // likewise, after them
  [[nodiscard]] std::uint64_t subject() const { return batch; }
  static constexpr auto fields(auto& self) { return std::tie(self.batch, self.runs, self.moves, self.copies); }
};

/// The result of one run. Its tokens are empty when it wanted no logits, or when there is no answer.
struct run_result {
  sequence_id sequence;
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;
  std::vector<sampling::emitted_logprob> logprobs;
  std::optional<failure> why_not;  // the model has no next token for this sequence
  draft::mtp_draft mtp;            // what may follow the tokens
  static constexpr auto fields(auto& self) {
    return std::tie(self.sequence, self.accepted_count, self.tokens, self.logprobs, self.why_not, self.mtp);
  }
};

struct batch_done {
  static constexpr actor::message_id id{0x041a};  // 0x0405, 0x0414 and 0x0418 were older forms
  static constexpr std::string_view name = "batch_done";

  std::uint64_t batch = 0;
  std::vector<run_result> results;  // one per run, in order
  std::uint64_t elapsed_us = 0;     // of the pass and its acceptance
  std::uint64_t mtp_us = 0;         // of the MTP layer's drafts after them
  std::optional<failure> why_not;   // the batch was invalid; nothing was computed
  bool lacks_grammars = false;      // a grammar's name is unknown: nothing was computed, the texts must be sent
  std::uint64_t experts_count = 0;  // distinct experts that the pass touched, over all layers; 0 for a dense model
  static constexpr auto fields(auto& self) {
    return std::tie(self.batch, self.results, self.elapsed_us, self.why_not, self.lacks_grammars, self.experts_count,
                    self.mtp_us);
  }
};

/// Asks the target model to send target_ready again, because the cache manager is new or waits for it.
struct announce_target {
  static constexpr actor::message_id id{0x0408};
  static constexpr std::string_view name = "announce_target";
  static constexpr bool control = true;
  static constexpr auto fields(auto&) { return std::tie(); }
};

/// The measured time of a pass of the target model on its machine.
struct pass_cost {
  std::uint32_t rows = 0;     // rows of the pass, all in one run
  std::uint32_t logits = 0;   // those of the rows that want logits
  std::uint32_t context = 0;  // tokens before the rows
  std::uint64_t took_us = 0;
  std::uint64_t experts_count = 0;  // as in batch_done
  static constexpr auto fields(auto& self) {
    return std::tie(self.rows, self.logits, self.context, self.took_us, self.experts_count);
  }
};

/// The target model is up (again), and its KV counts as empty. Sent to the cache manager at every start.
struct target_ready {
  static constexpr actor::message_id id{0x0415};  // 0x0406 was an older form
  static constexpr std::string_view name = "target_ready";
  static constexpr bool control = true;

  std::uint32_t context = 0;  // most tokens in a sequence: the model's context, or the pool's size if that is smaller
  std::uint32_t vocabulary = 0;
  std::uint32_t rows_max = 0;
  std::uint32_t pages_count = 0;
  std::uint32_t window_pages_count = 0;
  std::vector<pass_cost> costs;  // measured at start; may be empty
  std::uint64_t start_id = 0;    // random number drawn at each start; 0 if not given
  cost::mixture_shape mixture;   // the model's experts
  static constexpr auto fields(auto& self) {
    return std::tie(self.context, self.vocabulary, self.rows_max, self.pages_count, self.costs, self.start_id,
                    self.mixture, self.window_pages_count);
  }
};

}  // namespace redline::actors
