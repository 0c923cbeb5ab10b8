#include "runtime/grammar/json_schema.hpp"

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/rules_automaton.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"

namespace redline::grammar {
namespace {

constexpr std::size_t json_depth_max = 64;
constexpr std::uint32_t whitespace_most = 64;
constexpr const char* whitespace_keyword = "redline:blanks";  // allowed only at the top level; see README.md

}  // namespace

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, schema_options options,
                                                             step_count& steps) {
  if (schema.size() > schema_bytes_max) {
    return failure{errc::invalid_argument, "schema: expected at most " + std::to_string(schema_bytes_max) +
                                               " bytes, found " + std::to_string(schema.size())};
  }
  const auto root = parse_json<json>(schema, {.depth_max = json_depth_max});
  if (!root) return failure{errc::invalid_argument, "schema: " + root.error().context};
  if (const auto blanks = root->is_object() ? root->find(whitespace_keyword) : root->end(); blanks != root->end()) {
    if (!blanks->is_number_unsigned() || *blanks > whitespace_most) {
      return failure{errc::invalid_argument, std::string("schema.") + whitespace_keyword +
                                                 ": must be a number: at most " + std::to_string(whitespace_most) +
                                                 " blanks may stand between two tokens"};
    }
    options.blanks_max = blanks->get<std::uint32_t>();
  }
  REDLINE_TRY_ASSIGN(auto rules, write_schema_rules(*root, options, steps));
  REDLINE_TRY_ASSIGN(auto automaton, rules_automaton::compile(std::move(rules), steps));
  return std::shared_ptr<const byte_automaton>(std::move(automaton));
}

result<std::shared_ptr<const byte_automaton>> compile_schema(std::string_view schema, schema_options options) {
  step_count steps(schema_steps_max);
  return compile_schema(schema, options, steps);
}

}  // namespace redline::grammar
