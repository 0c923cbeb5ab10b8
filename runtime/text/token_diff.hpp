#pragma once

#include <span>
#include <vector>

#include "runtime/text/document_tokens.hpp"

namespace redline::text {

/// The changes from one token sequence to another: a shortest edit script (Myers, "An O(ND) difference algorithm",
/// 1986), except that fewer than `kept_min` tokens between two changes are replaced with them. Sequences with too many
/// differences or changes are replaced in one splice. Splices are ordered by position and applied one after the other;
/// none is empty, and kept tokens lie between them.
[[nodiscard]] std::vector<token_splice> diff_tokens(std::span<const token> before, std::span<const token> after,
                                                    std::uint32_t kept_min);

}  // namespace redline::text
