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
/// the first disagreement, or a bonus token when all was accepted).
struct acceptance {
  bool is_usable = true;  // false: a row that decides has no finite logits, and nothing else is set
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;              // accepted_count + 1
  std::vector<emitted_logprob> logprobs;  // one per token when asked for, else empty
};

/// A row of logits, or of a row of which nothing else matters only the best of them.
struct judged_row {
  std::span<const float> logits;  // [vocabulary] or empty
  best_logit best;                // of the logits as the model gives them
};

/// How a draft is verified.
struct verification_options {
  std::optional<std::uint32_t> logprobs_count = {};  // alternatives per token; nullopt: no log-probabilities
  row_filter* filter = nullptr;                      // a grammar's masks, or null; it may end the walk early
  chooser_of_answer chooser = {};                    // may replace a row's sample after sampling
  bool scores = false;  // the draft stands whatever the model says: see `score`; needs logprobs_count
};

/// Lossless verification of a draft (Leviathan et al. 2023, by common random numbers instead of rejection): samples row
/// after row as plain decoding would, and continues while the sample equals the draft. So the tokens are those of plain
/// decoding. Row i predicts draft[i]; rows are given one after the other, as long as any matter: those after the first
/// refusal need not be computed. Refers to its arguments.
class draft_verification {
 public:
  /// before: the committed tokens before the draft.
  draft_verification(std::span<const token> draft, const sampling_params& params, const token_context& before,
                     const verification_options& how = {});

  [[nodiscard]] bool is_done() const { return is_done_; }
  /// The row that is judged next, and how many are left if none is refused.
  [[nodiscard]] std::size_t next_row() const { return next_; }
  [[nodiscard]] std::size_t rows_left() const { return is_done_ ? 0 : draft_.size() + 1 - next_; }
  /// Whether rows may come without their logits.
  [[nodiscard]] bool needs_only_best() const;
  /// Judges the next row.
  void judge(const judged_row& r);
  /// Once it is done.
  acceptance take() { return std::move(out_); }

 private:
  std::span<const token> draft_;
  const sampling_params& params_;
  token_context before_;
  verification_options how_;
  row_sampler sampler_;
  acceptance out_;
  std::size_t next_ = 0;
  bool is_done_ = false;
};

/// The same with all rows at hand. logits: [draft.size() + 1, vocabulary].
acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before,
                  std::optional<std::uint32_t> logprobs_count = std::nullopt, row_filter* filter = nullptr,
                  const chooser_of_answer& chooser = {});

/// What the model says of tokens that stand, whatever it would have written: all of the draft counts as accepted, and
/// one more token comes after it, the most probable one. logprobs: of the logits as they are.
acceptance score(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                 std::uint32_t logprobs_count);

}  // namespace redline::sampling
