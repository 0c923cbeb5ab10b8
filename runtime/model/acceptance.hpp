#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/model/row_filter.hpp"
#include "runtime/model/sampling.hpp"

namespace redline::model {

/// The outcome of one verification: the accepted part of the draft plus one token of the model's own (recovered at the
/// first disagreement, bonus when all was accepted).
struct acceptance {
  std::uint32_t accepted_count = 0;
  std::vector<token> tokens;              // accepted_count + 1
  std::vector<emitted_logprob> logprobs;  // one per token when asked for, else empty
};

/// Lossless verification (TECHNIQUES 1): walks the rows in order, samples each as plain decoding would, and goes on
/// while the sample equals the draft. logits: [draft.size() + 1, vocabulary], row i predicts draft[i].
/// before: committed tokens before the draft; logprobs_count: nullopt for none, else alternatives per token. known: for
/// benchmarks only, one token per row that takes the place of the row's choice, which is made all the same. filter:
/// what a grammar allows, or null; it sees the tokens in order and may end the walk before the draft does.
acceptance accept(std::span<const float> logits, std::size_t vocabulary, std::span<const token> draft,
                  const sampling_params& params, const token_context& before,
                  std::optional<std::uint32_t> logprobs_count = std::nullopt, std::span<const token> known = {},
                  row_filter* filter = nullptr);

}  // namespace redline::model
