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
  /// Whether members come in the order in which the schema names them; objects with more than 32 have it in any case.
  bool in_order = true;
};

/// Writes a schema as rules: their texts are JSON values that match it. Fails with the path for what cannot be
/// enforced, and if it takes more than the limit of `steps`. In order, members that only `required` names come after
/// those that are declared, and others last.
[[nodiscard]] result<grammar_rules> write_schema_rules(const json& schema, const schema_options& options,
                                                       step_count& steps);

}  // namespace redline::grammar
