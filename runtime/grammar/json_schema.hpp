#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/constraint.hpp"

namespace redline::grammar {

/// Even the schemas that take the most steps for their bytes stay below this limit at schema_bytes_max.
inline constexpr std::size_t schema_steps_max = 16 * schema_bytes_max;
inline constexpr std::size_t schema_rules_steps_max = 4'000'000;  // about 40 ms

/// Compiles an automaton for the JSON values of a schema; see README.md for the supported keywords and bounds. Fails
/// with the path for anything it cannot enforce, and if it takes more than the limit of `steps`. Patterns have a limit
/// of their own and do not count. An empty schema allows any value, {"type":"object"} any object.
///
/// A schema that a json_automaton cannot express becomes rules (schema/schema_rules.hpp), within the limit of
/// `rules_steps`; if that is null, it is refused.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, step_count& steps,
                                                                           step_count* rules_steps);
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, step_count& steps);
/// The same with a limit of schema_steps_max.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema);

}  // namespace redline::grammar
