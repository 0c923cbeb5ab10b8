#pragma once

#include <string_view>

#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// Whether the first rule or statement is Lark's: NAME: ..., ?name: ..., %import ...
[[nodiscard]] bool looks_like_lark(std::string_view text);

/// Reads a grammar in Lark (lark-parser.readthedocs.io, "Grammar Reference"). It begins with the rule `start`. Syntax
/// that says how texts become trees (aliases, priorities, ?, ! and _) is skipped, because no tree is built. What
/// %ignore names may come before the first terminal and after each. Fails with the line of an error, and if it takes
/// more than the limit of `steps`.
[[nodiscard]] result<grammar_rules> read_lark(std::string_view text, step_count& steps);

}  // namespace redline::grammar
