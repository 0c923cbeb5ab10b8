#include "runtime/grammar/json_schema.hpp"

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/automata/rules_automaton.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t json_depth_max = 64;
constexpr std::uint32_t whitespace_most = 64;
// Allowed only at the top level; see README.md.
constexpr const char* whitespace_keyword = "redline:blanks";
constexpr const char* order_keyword = "redline:member_order";

/// Takes Redline's own keywords out of a schema.
result<void> take_options(json& root, schema_options& options) {
  if (!root.is_object()) return {};
  if (const auto blanks = root.find(whitespace_keyword); blanks != root.end()) {
    if (!blanks->is_number_unsigned() || *blanks > whitespace_most) {
      return failure{errc::invalid_argument, std::string("schema.") + whitespace_keyword +
                                                 ": must be a number: at most " + std::to_string(whitespace_most) +
                                                 " blanks may stand between two tokens"};
    }
    options.blanks_max = blanks->get<std::uint32_t>();
    root.erase(whitespace_keyword);
  }
  if (const auto order = root.find(order_keyword); order != root.end()) {
    if (*order != "any" && *order != "declared") {
      return failure{errc::invalid_argument, std::string("schema.") + order_keyword +
                                                 ": must be \"declared\" or \"any\": in which order members may come"};
    }
    options.in_order = *order == "declared";
    root.erase(order_keyword);
  }
  return {};
}

}  // namespace

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, schema_options options,
                                                             step_count& steps) {
  if (schema.size() > schema_bytes_max) {
    return failure{errc::invalid_argument, "schema: expected at most " + std::to_string(schema_bytes_max) +
                                               " bytes, found " + std::to_string(schema.size())};
  }
  auto root = parse_json<json>(schema, {.depth_max = json_depth_max});
  if (!root) return failure{errc::invalid_argument, "schema: " + root.error().context};
  REDLINE_TRY(take_options(*root, options));
  REDLINE_TRY_ASSIGN(auto rules, write_schema_rules(*root, {&*root}, options, steps));
  REDLINE_TRY_ASSIGN(auto automaton, rules_automaton::compile(std::move(rules.rules), steps));
  return std::shared_ptr<const byte_automaton>(std::move(automaton));
}

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, schema_options options) {
  step_count steps(schema_steps_max);
  return compile_schema(schema, options, steps);
}

}  // namespace redline::grammar
