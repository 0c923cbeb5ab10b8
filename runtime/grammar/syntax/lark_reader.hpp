#pragma once

#include <string_view>

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// The first rule or statement is Lark's: NAME: ..., ?name: ..., %import ...
[[nodiscard]] bool looks_like_lark(std::string_view text);

/// Reads a grammar in Lark (lark-parser.readthedocs.io, "Grammar Reference"). Its first rule is `start`. What says how
/// texts become trees (aliases, priorities, ?, ! and _) is read over: a text is held to the grammar, and no tree made
/// of it. What %ignore names may stand before the first terminal and after each. Fails with the line; and where
/// `steps` pass their limit.
[[nodiscard]] result<grammar_rules> read_lark(std::string_view text, step_count& steps);

}  // namespace redline::grammar
