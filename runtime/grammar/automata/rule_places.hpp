#pragma once

#include "runtime/grammar/automata/rule_positions.hpp"

namespace redline::grammar {

/// Fills the compilation's tables with the places that a text can be at.
void make_places(rules_compilation& work, const rule_positions& positions);

}  // namespace redline::grammar
