#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "runtime/grammar/constraint.hpp"
#include "runtime/grammar/tool_automaton.hpp"
#include "runtime/tools/call_format.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::grammar {

/// Names, schemas and what goes with them, as they travel with each round; without what schemas only describe.
inline constexpr std::size_t tools_bytes_max = 64 << 10;

/// What answers with these tools follow. A schema that cannot be held to refuses the request if its tool is strict;
/// else the arguments are held to as much of it as can be: without the keywords of values, or to being an object.
result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format, step_count& steps);
inline result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format) {
  step_count uncounted;
  return tool_constraint(set, format, uncounted);
}

/// The automaton of such a constraint's text. Fails for a malformed one.
result<std::shared_ptr<const tool_automaton>> compile_tools(std::string_view text, step_count& steps);
inline result<std::shared_ptr<const tool_automaton>> compile_tools(std::string_view text) {
  step_count uncounted;
  return compile_tools(text, uncounted);
}

}  // namespace redline::grammar
