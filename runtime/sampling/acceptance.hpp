#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/sampling/row_filter.hpp"
#include "runtime/sampling/sampling.hpp"
#include "runtime/sampling/token_chooser.hpp"

namespace redline::model {

/// The outcome of one verification: the accepted part of the draft and one token of the model's own (the correction at
/// the first disagreement, or a bonus token when all was accepted).
struct acceptance {
  bool is_usable = true;  // false: a row that decides has no finite logits, and nothing else is set
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;              // accepted_count + 1
  std::vector<emitted_logprob> logprobs;  // one per token when asked for, else empty
};

/// Lossless verification of a draft (Leviathan et al. 2023, by common random numbers instead of rejection): samples row
/// after row as plain decoding would, and continues while the sample equals the draft. So the tokens are those of plain
/// decoding.
/// logits: [draft.size() + 1, vocabulary]; row i predicts draft[i]. before: the committed tokens before the draft.
/// logprobs_count: alternatives per token, nullopt for no log-probabilities. filter: a grammar's masks, or null; it may
/// end the walk early. chooser: may replace a row's sample after sampling.
acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before,
                  std::optional<std::uint32_t> logprobs_count = std::nullopt, row_filter* filter = nullptr,
                  const chooser_of_answer& chooser = {});

/// What the model says of tokens that stand, whatever it would have written: all of the draft counts as accepted, and
/// one more token comes after it, the most probable one. logprobs: of the logits as they are.
acceptance score(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                 std::uint32_t logprobs_count);

}  // namespace redline::model
