#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/sampling/row_filter.hpp"
#include "runtime/sampling/sampling.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::sampling {

/// The outcome of one verification: the accepted part of the draft and one token of the model's own (the correction at
/// the first disagreement, or a bonus token if all was accepted).
struct acceptance {
  bool is_usable = true;  // false if a row that decides has no finite logits; nothing else is set then
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;              // accepted_count + 1
  std::vector<emitted_logprob> logprobs;  // one per token if requested, else empty
};

/// A row of logits, or only its best logit if nothing else of the row matters.
struct judged_row {
  std::span<const float> logits;  // [vocabulary] or empty
  best_logit best;                // best of the model's unmodified logits
};

/// How a draft is verified.
struct verification_options {
  std::optional<std::uint32_t> logprobs_count = {};  // alternatives per token; nullopt: no log-probabilities
  row_filter* filter = nullptr;                      // a grammar's masks, or null; it may end verification early
  std::optional<token> after_draft = {};             // the copied token after the draft, where no row has it
  chooser_of_answer chooser = {};                    // may replace a row's sample after sampling
  bool scores = false;  // the draft is accepted whatever the model says: see `score`; needs logprobs_count
};

/// Lossless verification of a draft (Leviathan et al. 2023, by common random numbers instead of rejection): samples row
/// after row as plain decoding would, and continues while the sample equals the draft. So the tokens are those of plain
/// decoding. Row i predicts draft[i]. Where the filter says that the answer copies, the copied token, which is the
/// draft's, may be taken although the sample differs. Rows are judged one after the other while they matter: those
/// after the first rejection need not be computed. Refers to its arguments.
class draft_verification {
 public:
  /// before: the committed tokens before the draft.
  draft_verification(std::span<const token> draft, const sampling_params& params, const token_context& before,
                     const verification_options& how = {});

  [[nodiscard]] bool is_done() const { return is_done_; }
  /// The row to judge next, and how many are left if none is rejected.
  [[nodiscard]] std::size_t next_row() const { return next_; }
  [[nodiscard]] std::size_t rows_left() const { return is_done_ ? 0 : draft_.size() + 1 - next_; }
  /// Whether rows may be judged without their logits.
  [[nodiscard]] bool needs_only_best() const;
  /// Judges the next row.
  void judge(const judged_row& r);
  /// Returns the outcome; requires is_done().
  acceptance take() { return std::move(out_); }

 private:
  [[nodiscard]] token choose(const judged_row& r);
  [[nodiscard]] token choose_in_copy(const judged_row& r, token copied, float least);

  std::span<const token> draft_;
  const sampling_params& params_;
  token_context before_;
  verification_options how_;
  row_sampler sampler_;
  std::vector<std::uint64_t> with_copied_;  // a mask, and the copied token that it lacks
  acceptance out_;
  std::size_t next_ = 0;
  bool is_done_ = false;
};

/// Verifies with all rows available. logits: [draft.size() + 1, vocabulary].
acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before, const verification_options& how = {});

/// The model's probabilities of fixed tokens, whatever it would have written: the whole draft counts as accepted,
/// followed by the most probable next token. logprobs: from the unmodified logits.
acceptance score(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                 std::uint32_t logprobs_count);

}  // namespace redline::sampling
