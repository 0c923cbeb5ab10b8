#pragma once

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// Rewrites rules that begin with themselves, directly or by way of others, without changing their texts. Such rules
/// are left-linear equations A = A x | B y | z, whose texts are the paths through a graph with the rules as its nodes.
/// (For one rule: A = z (x)*.) Fails with the rule's name for hidden left recursion, where another rule that may be
/// empty comes before the rule itself. Also fails if it takes more than the limit of `steps`, or if the rules would
/// take more than left_recursion_bytes_max: each of those that begin with each other gets the whole graph.
inline constexpr std::size_t left_recursion_bytes_max = 16 << 20;
[[nodiscard]] result<void> remove_left_recursion(grammar_rules& grammar, step_count& steps);

}  // namespace redline::grammar
