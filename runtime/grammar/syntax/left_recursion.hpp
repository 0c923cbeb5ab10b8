#pragma once

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// Rewrites rules that begin with themselves, at once or by way of others, so that they take the same texts and do not:
/// such rules are equations A = A x | B y | z in which what begins them stands on the left, and an equation's texts are
/// those of the paths through a graph that has the rules as its nodes. (For one rule: A = z (x)*.) Fails with the name
/// of a rule that may first take nothing, by another rule, and then begins with itself; where `steps` pass their
/// limit; and where the rules would take more than left_recursion_bytes_max: each of those that begin with
/// each other gets the whole graph.
inline constexpr std::size_t left_recursion_bytes_max = 16 << 20;
[[nodiscard]] result<void> remove_left_recursion(grammar_rules& grammar, step_count& steps);

}  // namespace redline::grammar
