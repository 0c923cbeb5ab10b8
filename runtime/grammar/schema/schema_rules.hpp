#pragma once

#include <cstdint>

#include "runtime/grammar/schema/schema_document.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

struct schema_options {
  std::uint32_t blanks_max = 1;  // whitespace characters between two tokens; more than one may be of any kind
  /// Objects whose members are declared have no others, unless the schema says something of others.
  bool is_closed = false;
};

/// Writes a schema as rules: their texts are JSON values that match it. Fails with the path for what cannot be
/// enforced, and if it takes more than the limit of `steps`. Members come in the order in which the schema names them,
/// then those that only `required` names, then others.
[[nodiscard]] result<grammar_rules> write_schema_rules(const json& schema, const schema_options& options,
                                                       step_count& steps);

}  // namespace redline::grammar
