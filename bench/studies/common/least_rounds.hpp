#pragma once

#include <cstdint>
#include <span>

#include "bench/studies/common/names.hpp"
#include "runtime/base/ids.hpp"

namespace redline::studies {

/// Decides whether the simulated draft model is right at a token of a replayed answer: with the chance `right`, and the
/// same at every call with this position and this length of the answer.
[[nodiscard]] bool model_is_right(std::uint64_t index, std::size_t answer_count, double right);

/// The fewest rounds in which copying can write `answer` after `prompt`: each draft is the longest run that occurs
/// earlier in the prompt or the answer, chosen in knowledge of the answer and as long as it likes. A round verifies a
/// draft and gives one more token; the first token comes with the prompt, in a round of its own. Where `model_is_right`
/// the draft goes on behind the token that ends a run, with the next run; `model_right` is 0 without a draft model.
/// This is the parse of Ziv and Lempel ("A universal algorithm for sequential data compression", 1977), which is the
/// shortest. Rewritten text is too cheap in it, because even a single earlier token counts as a run.
[[nodiscard]] std::uint32_t least_rounds(std::span<const token> prompt, std::span<const token> answer,
                                         double model_right);

}  // namespace redline::studies
