#pragma once

#include <span>
#include <vector>

#include "runtime/text/document_tokens.hpp"

namespace redline::text {

/// What leads from one token sequence to another: a shortest edit script (Myers, "An O(ND) difference algorithm",
/// 1986), but for runs of fewer than `kept_min` tokens between two changes, which are replaced with them. Sequences
/// that differ too much for the search, or in too many places, differ in one. The splices are in order of place and
/// hold one after the other; none is empty, and between two of them lie kept tokens.
[[nodiscard]] std::vector<token_splice> diff_tokens(std::span<const token> before, std::span<const token> after,
                                                    std::uint32_t kept_min);

}  // namespace redline::text
