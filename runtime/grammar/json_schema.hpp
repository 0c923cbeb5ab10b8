#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/byte_automaton.hpp"

namespace redline::grammar {

/// An automaton for the JSON values of a schema; see README.md for the supported keywords and bounds. Fails for
/// anything that it cannot enforce, with the path. An empty schema allows any value, {"type":"object"} any object.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema);

}  // namespace redline::grammar
