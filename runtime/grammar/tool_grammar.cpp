#include "runtime/grammar/tool_grammar.hpp"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/base/strict_json.hpp"
#include "runtime/grammar/json_schema.hpp"
#include "runtime/grammar/schema/schema_clauses.hpp"

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
constexpr std::string_view keywords_of_elements[] = {"type", "properties", "required", "additionalProperties"};
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

// ---- arguments as elements -----------------------------------------------------------------------------------------

/// Whether the schema allows some string; the element is then written as raw text.
bool may_be_text(const json& schema) {
  if (!schema.is_object()) return true;
  if (const auto type = schema.find("type"); type != schema.end()) {
    return *type == "string" ||
           (type->is_array() && std::find(type->begin(), type->end(), json("string")) != type->end());
  }
  const auto is_text = [](const json& value) { return value.is_string(); };
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array())
    return std::any_of(values->begin(), values->end(), is_text);
  if (const auto value = schema.find("const"); value != schema.end()) return is_text(*value);
  for (const auto* name : {"anyOf", "oneOf"}) {
    const auto any = schema.find(name);
    if (any != schema.end() && any->is_array()) return std::any_of(any->begin(), any->end(), may_be_text);
  }
  return !schema.contains("properties") && !schema.contains("items") && !schema.contains("$ref");
}

/// Whether the schema restricts its strings.
bool bounds_texts(const json& schema) {
  if (!schema.is_object()) return false;
  for (const auto* name : {"enum", "const", "pattern", "format", "minLength", "maxLength"}) {
    if (schema.contains(name)) return true;
  }
  for (const auto* name : {"anyOf", "oneOf"}) {
    const auto any = schema.find(name);
    if (any != schema.end() && any->is_array() && std::any_of(any->begin(), any->end(), bounds_texts)) return true;
  }
  return false;
}

bool has_reference(const json& schema) {
  if (schema.is_object() && schema.contains("$ref")) return true;
  return schema.is_structured() && std::any_of(schema.begin(), schema.end(), has_reference);
}

// Limit on the schemas of a tool's properties, each with the definitions that it may refer to.
constexpr std::size_t elements_bytes_max = 4 * tools_bytes_max;

bool is_element_name(const std::string& name) {
  return !name.empty() && name.find_first_of("<>\n\r") == std::string::npos;
}

/// Compiles the schemas of a set of tools, those that are the same once.
class schema_compiler {
 public:
  explicit schema_compiler(step_count& steps) : steps_(steps) {}

  result<std::shared_ptr<const byte_automaton>> compile(const std::string& schema) {
    auto& known = known_[schema];
    if (known) return known;
    step_count own(std::min<std::uint64_t>(schema_steps_max, left_.left()));
    auto made = compile_schema(schema, {.is_closed = true}, own);
    left_.add(own.taken());
    steps_.add(own.taken());
    if (made) known = *made;
    return made;
  }

 private:
  step_count& steps_;
  step_count left_{2 * schema_steps_max};  // for all of them
  std::unordered_map<std::string, std::shared_ptr<const byte_automaton>> known_;
};

/// Elements are held to their own schemas, not to what stands beside those.
result<void> check_elements(const json& schema) {
  const auto wrong = [](const std::string& keyword, const std::string& why) {
    return failure{errc::invalid_argument, "schema: the keyword '" + keyword.substr(0, 64) + "' " + why};
  };
  for (const auto& [keyword, value] : schema.items()) {
    if (asserts(keyword) && !is_in(keywords_of_elements, keyword))
      return wrong(keyword, "is not supported in this model's form of calls");
  }
  const auto required = schema.find("required"), members = schema.find("properties");
  for (const auto& name : required != schema.end() && required->is_array() ? *required : json::array()) {
    if (!name.is_string() || members == schema.end() || !members->contains(name.get_ref<const std::string&>()))
      return wrong("required", "names a member without a schema");
  }
  return {};
}

result<std::vector<tool_element>> compile_elements(const json& schema, schema_compiler& schemas) {
  std::vector<tool_element> out;
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return out;
  std::size_t bytes = 0;
  std::unordered_set<std::string> required;
  if (const auto list = schema.find("required"); list != schema.end() && list->is_array()) {
    for (const auto& name : *list) {
      if (name.is_string()) required.insert(name.get<std::string>());
    }
  }
  for (const auto& [name, value] : properties->items()) {
    if (!is_element_name(name)) {
      return failure{errc::invalid_argument, "schema.properties: the name '" + name.substr(0, 64) +
                                                 "' cannot be written in this model's form of calls"};
    }
    tool_element element{.name = name, .required = required.contains(name), .value = nullptr, .text = nullptr};
    if (const bool is_text = may_be_text(value); !is_text || bounds_texts(value)) {
      json whole = value;
      for (const char* section : {"$defs", "definitions"}) {
        const auto all = schema.find(section);
        if (all != schema.end() && has_reference(value)) whole[section] = *all;
      }
      const std::string text = dump_json(whole);
      bytes += text.size();
      if (bytes > elements_bytes_max) {
        return failure{errc::invalid_argument,
                       "schema.properties: with the definitions they refer to they have more "
                       "than " +
                           std::to_string(elements_bytes_max) + " bytes; expected fewer or smaller definitions"};
      }
      REDLINE_TRY_ASSIGN(auto compiled, schemas.compile(text));
      automaton_state s = compiled->begin();
      if (is_text && compiled->advance(s, '"'))
        element.text = std::make_shared<const bound_text>(std::move(compiled));
      else
        element.value = std::move(compiled);
    }
    out.push_back(std::move(element));
  }
  return out;
}

// ---- one tool ------------------------------------------------------------------------------------------------------

result<callable_tool> compile_tool(const std::string& name, const json& schema, const tools::call_format& format,
                                   schema_compiler& schemas) {
  callable_tool out{.name = name, .arguments = nullptr, .elements = {}};
  REDLINE_TRY_ASSIGN(out.arguments, schemas.compile(dump_json(schema)));
  automaton_state s = out.arguments->begin();
  if (!out.arguments->advance(s, '{')) return failure{errc::invalid_argument, "schema: expected type object"};
  if (!format.has_elements) return out;
  REDLINE_TRY(check_elements(schema));
  REDLINE_TRY_ASSIGN(out.elements, compile_elements(schema, schemas));
  out.arguments = nullptr;
  return out;
}

/// As much of a tool's schema as can be enforced on its arguments.
result<json> usable_schema(const tools::tool& t, const tools::call_format& format, schema_compiler& schemas) {
  const json whole = as_object(reduce(t.parameters, false));
  const auto compiled = compile_tool(t.name, whole, format, schemas);
  if (compiled) return whole;
  if (t.strict) return of_tool(t.name, compiled.error());
  const json shape = as_object(reduce(t.parameters, true));
  if (compile_tool(t.name, shape, format, schemas)) return shape;
  return any_object();
}

}  // namespace

result<constraint> tool_constraint(const tools::tool_set& set, const tools::call_format& format, step_count& steps) {
  std::vector<const tools::tool*> allowed;
  const std::size_t least = dump_json(any_object()).size();
  std::size_t bytes = 1024;  // the text around the tools, then each tool with the shortest schema
  for (const auto& t : set.all) {
    const bool is_allowed =
        set.allowed.empty() || std::find(set.allowed.begin(), set.allowed.end(), t.name) != set.allowed.end();
    if (!is_allowed) continue;
    allowed.push_back(&t);
    bytes += t.name.size() + least + 8;
  }
  json callable = json::object();
  schema_compiler schemas(steps);
  for (const auto* t : allowed) {
    REDLINE_TRY_ASSIGN(auto schema, usable_schema(*t, format, schemas));
    const std::size_t size = dump_json(schema).size();
    const std::size_t more = size - std::min(size, least);
    // With very many tools, the last ones accept any object as arguments, unless they are strict.
    if (bytes + more > tools_bytes_max && !t->strict) {
      schema = any_object();
    } else {
      bytes += more;
    }
    callable[t->name] = std::move(schema);
  }
  json text;
  text["format"] = format.name;
  text["must_call"] = set.call == tools::choice::required;
  text["many"] = set.many;
  text["tools"] = std::move(callable);
  constraint c{.kind = grammar_kind::tools, .text = dump_json(text), .shape = {}, .state = {}};
  if (c.text.size() > tools_bytes_max) {
    return failure{errc::invalid_argument, "the schemas of all strict tools have more than " +
                                               std::to_string(tools_bytes_max) + " bytes without their descriptions"};
  }
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
  tool_automaton::rules rules;
  rules.format = tools::find_format(given["format"].get_ref<const std::string&>());
  if (rules.format == nullptr) return wrong("names an unknown format");
  rules.must_call = given["must_call"].get<bool>();
  rules.many = given["many"].get<bool>();
  schema_compiler schemas(steps);
  for (const auto& [name, schema] : given["tools"].items()) {
    if (name.empty() || name.size() > 256) return wrong("has a tool without a name");
    auto one = compile_tool(name, schema, *rules.format, schemas);
    if (!one) return of_tool(name, one.error());
    rules.tools.push_back(std::move(*one));
  }
  std::sort(rules.tools.begin(), rules.tools.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return std::make_shared<const tool_automaton>(std::move(rules));
}

}  // namespace redline::grammar
