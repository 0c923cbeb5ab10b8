#include "runtime/grammar/tool_grammar.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/automaton_store.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/schema/schema_rules.hpp"
#include "runtime/grammar/syntax/part_builders.hpp"

namespace redline::grammar {
namespace {

using json = nlohmann::ordered_json;

constexpr json_limits text_limits{.depth_max = 128};

template<std::size_t Count>
bool is_in(const std::string_view (&list)[Count], std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

constexpr std::string_view descriptions[] = {"title", "description", "default",    "examples", "$schema",
                                             "$id",   "$comment",    "deprecated", "readOnly", "writeOnly"};
/// Keywords that are supported in every schema. Some others are supported with some types and bounds.
constexpr std::string_view shapes[] = {"type",  "properties", "required", "additionalProperties",
                                       "items", "enum",       "const",    "anyOf",
                                       "oneOf", "$ref",       "$defs",    "definitions"};
constexpr std::string_view maps[] = {"properties", "$defs", "definitions"};
constexpr std::string_view lists[] = {"anyOf", "oneOf"};
constexpr std::string_view single[] = {"items", "additionalProperties"};

/// Whether a keyword is left out of a shape, since only some keywords can be enforced together: members and items take
/// precedence over values, and values over other schemas.
bool is_beside_shape(const json& schema, std::string_view name) {
  static constexpr std::string_view by_weight[] = {"properties", "items", "enum", "const", "$ref", "anyOf", "oneOf"};
  const auto* const own = std::ranges::find(by_weight, name);
  const auto is_there = [&](std::string_view other) { return schema.contains(other); };
  const auto* const first = std::ranges::find_if(by_weight, is_there);
  const bool has_members = first == std::begin(by_weight);
  if (name == "required") return !has_members;
  if (name == "additionalProperties") return !has_members && first != std::end(by_weight);
  return own != std::end(by_weight) && own > first;
}

/// The names in a list that are members. The others have no schema and cannot be written.
json declared_only(const json& required, const json& members) {
  json out = json::array();
  if (!required.is_array()) return out;
  for (const auto& name : required) {
    if (name.is_string() && members.contains(name.get_ref<const std::string&>())) out.push_back(name);
  }
  return out;
}

/// The schema without keywords that only describe or, with `to_shape`, with only those that give it its shape.
json reduce(const json& schema, bool to_shape) {
  if (!schema.is_object()) return schema;
  json out = json::object();
  for (const auto& [name, value] : schema.items()) {
    if (is_in(descriptions, name)) continue;
    if (to_shape && (!is_in(shapes, name) || is_beside_shape(schema, name))) continue;
    if (to_shape && name == "required") {
      out[name] = declared_only(value, schema["properties"]);
      continue;
    }
    if (is_in(maps, name) && value.is_object()) {
      json members = json::object();
      for (const auto& [key, inner] : value.items()) members[key] = reduce(inner, to_shape);
      out[name] = std::move(members);
    } else if (is_in(lists, name) && value.is_array()) {
      json members = json::array();
      for (const auto& inner : value) members.push_back(reduce(inner, to_shape));
      out[name] = std::move(members);
    } else {
      out[name] = is_in(single, name) ? reduce(value, to_shape) : value;
    }
  }
  return out;
}

json any_object() { return {{"type", "object"}}; }

/// Arguments are an object, even if the schema does not say so or allows other values too.
json as_object(json schema) {
  if (!schema.is_object()) return any_object();
  const auto type = schema.find("type");
  const bool may_be =
      type == schema.end() || (type->is_array() && std::ranges::find(*type, json("object")) != type->end());
  if (may_be) schema["type"] = "object";
  return schema;
}

failure of_tool(const std::string& name, const failure& why) {
  return {why.code, "tool '" + name + "': " + why.context};
}

schema_options options_of(const tools::call_format& format) {
  schema_options out{.is_closed = true};
  if (format.has_elements) out.elements = {tools::element_begin, tools::element_after_name, tools::element_end};
  return out;
}

/// Whether a schema can be enforced alone. left: steps for all of them, from which it takes its own.
result<void> check_alone(const json& schema, const tools::call_format& format, step_count& left) {
  if (schema.contains("type") && schema["type"] != "object")
    return failure{errc::invalid_argument, "schema: expected type object"};
  step_count own(std::min<std::uint64_t>(schema_steps_max, left.left()));
  auto rules = write_schema_rules(schema, {&schema}, options_of(format), own);
  auto made = rules ? rules_automaton::make(std::move(rules->rules), own) : result<rules_automaton>(rules.error());
  left.add(own.taken());
  if (!made) return made.error();
  return {};
}

/// As much of a tool's schema as can be enforced on its arguments. `whole`: all of it.
result<json> usable_schema(const tools::tool& t, json whole, const tools::call_format& format, step_count& left) {
  const auto is_held = check_alone(whole, format, left);
  if (is_held) return whole;
  if (t.strict) return of_tool(t.name, is_held.error());
  json shape = as_object(reduce(t.parameters, true));
  return check_alone(shape, format, left) ? shape : any_object();
}

/// The rule of answers, and that of a call's name and arguments, before the rules of the arguments, in the order of
/// the tools.
result<void> add_calls(grammar_rules& to, const std::vector<callable_tool>& tools, const tools::call_format& f,
                       bool must_call, bool many) {
  const auto text = [](std::string_view one) { return literal(std::string(one)); };
  const auto answer = static_cast<std::uint32_t>(to.rules.size()), one_call = answer + 1;
  std::vector<part> names;
  std::vector<std::string> bare;  // how a call without `begin` begins
  for (std::uint32_t i = 0; i < tools.size(); ++i) {
    names.push_back(sequence(literal(tools[i].name + std::string(f.after_name)), call(i)));
    if (!f.bare_begin.empty()) bare.push_back(std::string(f.bare_begin) + tools[i].name + f.after_name.front());
  }
  // Everything from the first name on: one call, or a list of them.
  part calls = call(one_call);
  if (!f.next.empty()) {
    if (many) calls = sequence(std::move(calls), repeat(sequence(text(f.next), call(one_call)), 0, UINT32_MAX));
    calls = sequence(std::move(calls), text(f.end));
  }
  const auto texts = [](regex_dfa made) {
    return expression(std::make_shared<const regex_dfa>(std::move(made)), false);
  };
  REDLINE_TRY_ASSIGN(auto without_calls, regex_dfa::bytes_without(f.begin));
  auto before_calls = regex_dfa::bytes_without(f.begin, bare);
  if (!before_calls) {
    return failure{errc::invalid_argument,
                   "the tools' names are too long for this model's form of calls; expected at most " +
                       std::to_string(regex_dfa::bytes_without_max) + " bytes, without common beginnings"};
  }
  const part said = texts(std::move(without_calls));
  const part marked = sequence(text(std::string(f.begin) + std::string(f.before_name)), calls);
  const bool goes_on = many && !f.ends_answer;
  const part after = goes_on ? sequence(said, repeat(sequence(marked, said), 0, UINT32_MAX)) : literal("");
  std::vector<part> answers;
  if (!f.bare_begin.empty()) answers.push_back(sequence(text(f.bare_begin), calls, after));
  if (!must_call)
    answers.push_back(sequence(texts(std::move(*before_calls)), optional_part(sequence(marked, after))));
  else if (f.bare_begin.empty())
    answers.push_back(sequence(marked, after));
  to.root = answer;
  to.subject = "tools";
  to.rules.push_back({.name = "answer", .is_written = true, .right = choice(std::move(answers)), .is_markup = true});
  to.rules.push_back({.name = "call",
                      .is_written = true,
                      .right = sequence(choice(std::move(names)), text(f.after_arguments)),
                      .is_markup = true});
  return {};
}

}  // namespace

result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format, step_count& steps,
                                   automaton_store* automata) {
  std::vector<const tools::tool*> allowed;
  for (const auto& t : set.all) {
    if (set.allowed.empty() || std::ranges::find(set.allowed, t.name) != set.allowed.end()) allowed.push_back(&t);
  }
  constraint c{.kind = grammar_kind::tools, .text = {}, .shape = {}, .state = {}};
  // Returns why the tools cannot be held to these schemas together.
  const auto hold_to = [&](json schemas) -> result<void> {
    json text;
    text["format"] = format.name;
    text["must_call"] = set.call == tools::choice::required;
    text["many"] = set.many;
    text["tools"] = std::move(schemas);
    c.text = dump_json(text);
    if (c.text.size() > tools_bytes_max) {
      return failure{errc::invalid_argument,
                     "the tools have more than " + std::to_string(tools_bytes_max) +
                         " bytes without their descriptions; expected fewer or smaller schemas"};
    }
    if (automata != nullptr) {
      const auto known = automata->get(c);
      return known ? result<void>() : known.error();
    }
    const auto made = compile_tools(c.text, steps);
    return made ? result<void>() : made.error();
  };
  json schemas = json::object();
  bool are_objects = true;
  for (const auto* t : allowed) {
    auto& whole = schemas[t->name] = as_object(reduce(t->parameters, false));
    are_objects = are_objects && whole["type"] == "object";
  }
  if (are_objects && hold_to(schemas)) return c;
  // Then each tool has as much as it can alone, as long as there is room. The last ones accept any object.
  step_count left(2 * schema_steps_max);  // for all of them
  const std::size_t least = dump_json(any_object()).size();
  std::size_t bytes = 1024;  // the text around the tools, then each tool with the shortest schema
  for (const auto* t : allowed) bytes += t->name.size() + least + 8;
  for (const auto* t : allowed) {
    auto& schema = schemas[t->name];
    REDLINE_TRY_ASSIGN(schema, usable_schema(*t, std::move(schema), format, left));
    const std::size_t size = dump_json(schema).size();
    const std::size_t more = size - std::min(size, least);
    if (bytes + more > tools_bytes_max && !t->strict)
      schema = any_object();
    else
      bytes += more;
  }
  steps.add(left.taken());
  if (hold_to(schemas)) return c;
  for (const auto* t : allowed) {
    if (!t->strict) schemas[t->name] = any_object();
  }
  REDLINE_TRY(hold_to(std::move(schemas)));
  return c;
}

result<std::shared_ptr<const tool_automaton>> compile_tools(std::string_view text, step_count& steps) {
  const auto wrong = [](const std::string& what) {
    return failure{errc::malformed_message, "a grammar of tools " + what + "; the peers may run different versions"};
  };
  if (text.size() > tools_bytes_max) return wrong("has more than " + std::to_string(tools_bytes_max) + " bytes");
  const auto parsed = parse_json<json>(text, text_limits);
  if (!parsed || !parsed->is_object()) return wrong("is malformed");
  const auto& given = *parsed;
  const auto is_flag = [&](const char* name) { return given.contains(name) && given[name].is_boolean(); };
  if (!given.contains("format") || !given["format"].is_string() || !is_flag("must_call") || !is_flag("many") ||
      !given.contains("tools") || !given["tools"].is_object() || given["tools"].empty()) {
    return wrong("is malformed");
  }
  const auto* const format = tools::find_format(given["format"].get_ref<const std::string&>());
  if (format == nullptr) return wrong("names an unknown format");
  std::vector<callable_tool> callable;
  // Each tool's schema is a document of its own within one, so that its references stay its own.
  json document{{"$defs", json::object()}};
  auto& schemas = document["$defs"];
  for (const auto& [name, schema] : given["tools"].items()) {
    if (name.empty() || name.size() > 256) return wrong("has a tool without a name");
    schemas[name] = schema;
    if (schema.is_object()) schemas[name]["$id"] = "tool:" + std::to_string(callable.size());
    callable.push_back({name});
  }
  std::ranges::sort(callable, {}, &callable_tool::name);
  std::vector<const json*> parts;
  for (const auto& t : callable) parts.push_back(&schemas[t.name]);
  step_count own(2 * schema_steps_max);
  const auto compile = [&]() -> result<rules_automaton> {
    REDLINE_TRY_ASSIGN(auto written, write_schema_rules(document, parts, options_of(*format), own));
    REDLINE_TRY(add_calls(written.rules, callable, *format, given["must_call"].get<bool>(), given["many"].get<bool>()));
    for (std::size_t i = 0; i < written.elements.size(); ++i) callable[i].elements = std::move(written.elements[i]);
    return rules_automaton::make(std::move(written.rules), own);
  };
  auto made = compile();
  steps.add(own.taken());
  if (!made) return made.error();
  return std::make_shared<const tool_automaton>(std::move(*made), *format, std::move(callable));
}

}  // namespace redline::grammar
