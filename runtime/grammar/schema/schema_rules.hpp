#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/grammar/schema/schema_document.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"
#include "runtime/grammar/syntax/steps.hpp"

namespace redline::grammar {

/// The text around one member of an object that is written as elements.
struct element_markup {
  std::string_view begin, after_name, end;  // of which `end` begins with a byte that is only there
};

struct schema_options {
  std::uint32_t blanks_max = 1;  // whitespace characters between two tokens; more than one may be of any kind
  /// Objects whose members are declared have no others, unless the schema says something of others.
  bool is_closed = false;
  /// Whether members come in the order in which the schema names them; objects with more than 32 have it in any case.
  bool in_order = true;
  /// Values are objects, without braces: elements, of which each has the inside of a string, or the JSON value of a
  /// member that may not be a string. They come in the schema's order, and there are no others.
  std::optional<element_markup> elements{};
};

struct written_element {
  std::string name;
  bool is_text = false;  // the inside of a string
};
struct schema_rules {
  grammar_rules rules;
  std::vector<std::vector<written_element>> elements{};  // by part and name, with schema_options::elements
};

/// Writes schemas, which are parts of a document, as rules 0, 1, ...: their texts are JSON values that match it. Fails
/// with the path for what cannot be enforced, and if it takes more than the limit of `steps`. In order, members that
/// only `required` names come after those that are declared, and others last.
[[nodiscard]] result<schema_rules> write_schema_rules(const json& document, const std::vector<const json*>& parts,
                                                      const schema_options& options, step_count& steps);

}  // namespace redline::grammar
