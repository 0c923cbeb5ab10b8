#pragma once

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// Reads a grammar in GBNF, the format of llama.cpp. It begins with the rule `root`, wherever that is written.
[[nodiscard]] result<grammar_rules> read_gbnf(std::string_view text);

}  // namespace redline::grammar
