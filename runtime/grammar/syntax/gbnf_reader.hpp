#pragma once

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// Reads a grammar in GBNF, as llama.cpp writes them. Its first rule is `root`, wherever it stands.
[[nodiscard]] result<grammar_rules> read_gbnf(std::string_view text);

}  // namespace redline::grammar
