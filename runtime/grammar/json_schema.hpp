#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/byte_automaton.hpp"

namespace redline::grammar {

/// A machine for the JSON values of a schema. Known keywords: type (one or several), properties, required,
/// additionalProperties, items, minItems, maxItems, enum, const, anyOf, $ref into $defs; what only describes is passed
/// over, everything else is refused with its path. Members come in the schema's order; an object that declares members
/// has no others. Alternatives must differ in their first character. Blanks between tokens are bounded, as are the
/// digits of a number and the depth. An empty schema stands for any value, {"type":"object"} for any object.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema);

}  // namespace redline::grammar
