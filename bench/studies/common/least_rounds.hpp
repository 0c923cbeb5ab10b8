#pragma once

#include <cstdint>
#include <span>

#include "bench/studies/common/names.hpp"
#include "runtime/base/ids.hpp"

namespace redline::studies {

/// The fewest rounds in which copying can write `answer` after `prompt`: each draft is the longest run that occurs
/// earlier in the prompt or the answer, chosen in knowledge of the answer and as long as it likes. A round verifies a
/// draft and gives one more token; the first token comes with the prompt, in a round of its own. This is the parse of
/// Ziv and Lempel ("A universal algorithm for sequential data compression", 1977), which no choice of runs makes
/// shorter. Real drafts of rewritten text need more, because here even a single earlier token is a run. With a draft
/// model, a draft goes on after the longest run with the model's token where `model_is_right`, and with the next run; a
/// draft that left a run early to do so could be longer still. `model_right` is 0 without a model.
[[nodiscard]] std::uint32_t least_rounds(std::span<const token> prompt, std::span<const token> answer,
                                         double model_right);

}  // namespace redline::studies
