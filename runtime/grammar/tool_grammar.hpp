#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/tool_automaton.hpp"
#include "runtime/tools/call_format.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::grammar {

class automaton_store;

/// Limit on the text of a constraint: the tools' names, schemas and flags, without keywords that only describe.
inline constexpr std::size_t tools_bytes_max = 64 << 10;

/// The constraint for answers that may call these tools. If a schema cannot be enforced, the request fails if the tool
/// is strict. Otherwise the arguments follow as much of it as possible: only its shape, or any object. automata: where
/// the constraint is compiled, so that tools that come again are not compiled again, and `steps` counts only what is
/// tried besides; may be null.
result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format, step_count& steps,
                                   automaton_store* automata = nullptr);
inline result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format) {
  step_count uncounted;
  return tool_constraint(set, format, uncounted);
}

/// Compiles the text of such a constraint. Fails if it is malformed.
result<std::shared_ptr<const tool_automaton>> compile_tools(std::string_view text, step_count& steps);
inline result<std::shared_ptr<const tool_automaton>> compile_tools(std::string_view text) {
  step_count uncounted;
  return compile_tools(text, uncounted);
}

}  // namespace redline::grammar
