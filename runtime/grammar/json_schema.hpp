#pragma once

#include <memory>
#include <string_view>

#include "runtime/base/result.hpp"
#include "runtime/grammar/automata/byte_automaton.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"

namespace redline::grammar {

inline constexpr std::size_t schema_bytes_max = 1 << 20;
/// Some 0.1 s. Of 11,305 schemas of MaskBench three take more.
inline constexpr std::size_t schema_steps_max = 1'500'000;

/// Compiles an automaton for the JSON values of a schema; see README.md for the supported keywords and bounds. Fails
/// with the path for anything it cannot enforce, and if it takes more than the limit of `steps`. An empty schema allows
/// any value, {"type":"object"} any object.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema,
                                                                           schema_options options, step_count& steps);
/// The same with a limit of schema_steps_max.
[[nodiscard]] result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema,
                                                                           schema_options options = {});

}  // namespace redline::grammar
