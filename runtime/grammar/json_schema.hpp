#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/constraint.hpp"

namespace redline::grammar {

/// The schemas that take the most steps for their bytes stay below this at schema_bytes_max.
inline constexpr std::size_t schema_steps_max = 16 * schema_bytes_max;

/// An automaton for the JSON values of a schema; see README.md for the supported keywords and bounds. Fails for
/// anything that it cannot enforce, with the path. An empty schema allows any value, {"type":"object"} any object.
/// What takes more than the limit of `steps` is refused; the patterns have a limit of their own and are not in `steps`.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, step_count& steps);
/// The same with schema_steps_max.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema);

}  // namespace redline::grammar
