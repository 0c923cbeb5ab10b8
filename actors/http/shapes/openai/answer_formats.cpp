#include "actors/http/shapes/openai/answer_formats.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace redline::api {
namespace {

using grammar::grammar_kind;
using grammar::grammar_text;

/// A JSON schema, given as an object or as its text.
std::optional<grammar_text> schema_of(field_reader& fields, const std::string& name, const json& given) {
  if (given.is_object()) return grammar_text{.text = dump_json(given)};
  if (given.is_string()) {
    const auto parsed = parse_json<json>(given.get_ref<const std::string&>());
    if (parsed && parsed->is_object()) return grammar_text{.text = dump_json(*parsed)};
  }
  fields.refuse(name,
                "'" + fields.path_of(name) + "' must be a JSON schema: an object, or a string that contains one.");
  return std::nullopt;
}

/// A choice among texts, as a regular expression.
std::optional<grammar_text> choice_of(field_reader& fields, const std::string& name, const json& given) {
  const auto is_text = [](const json& text) { return text.is_string() && !text.get_ref<const std::string&>().empty(); };
  if (!given.is_array() || given.empty() || !std::all_of(given.begin(), given.end(), is_text)) {
    fields.refuse(name, "'" + fields.path_of(name) + "' must be a list of non-empty strings.");
    return std::nullopt;
  }
  std::string pattern;
  for (const auto& text : given) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : text.get_ref<const std::string&>()) {
      if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
  return grammar_text{grammar_kind::regex, pattern};
}

std::optional<grammar_text> regex_of(field_reader& fields, const std::string& name, const json& given) {
  if (given.is_string()) return grammar_text{grammar_kind::regex, given.get<std::string>()};
  fields.refuse_type(name, "a string", given);
  return std::nullopt;
}

/// A grammar in llama.cpp's GBNF or in Lark. An empty text asks for nothing.
std::optional<grammar_text> grammar_of(field_reader& fields, const std::string& name, const json& given) {
  if (!given.is_string()) {
    fields.refuse_type(name, "a string", given);
    return std::nullopt;
  }
  if (given.get_ref<const std::string&>().empty()) return std::nullopt;
  return grammar_text{grammar_kind::rules, given.get<std::string>()};
}

struct guide {
  std::string_view name;
  std::optional<grammar_text> (*read)(field_reader&, const std::string&, const json&);
};

/// Reads the one member that is given. Two of them contradict each other.
void read_guides(field_reader& fields, std::span<const guide> guides, generation_request& out) {
  for (const auto& one : guides) {
    const std::string name(one.name);
    const json* given = fields.find(name);
    if (given == nullptr) continue;
    if (out.format)
      return fields.refuse(name, "'" + fields.path_of(name) +
                                     "' cannot be combined with another format: give one format for the answer.");
    out.format = one.read(fields, name, *given);
  }
}

}  // namespace

void read_format(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out) {
  const json* given = fields.object("response_format");
  if (!given) return;
  field_reader inner(*given, "response_format", error);
  const auto type = inner.text("type", limits.name_bytes_max);
  if (type == "text") return;
  if (type == "json_object") {
    const json* rules = inner.find("schema");
    out.format = grammar_text{.text = R"({"type":"object"})"};
    if (rules && *rules != json::object()) out.format = schema_of(inner, "schema", *rules);
    return;
  }
  if (type != "json_schema") {
    return inner.refuse("type", "'response_format.type' must be one of text, json_object and json_schema.");
  }
  const json* named = inner.object("json_schema");
  if (!named) return inner.refuse("json_schema", "'response_format.json_schema' is required.");
  field_reader schema(*named, "response_format.json_schema", error);
  static_cast<void>(schema.text("name", limits.name_bytes_max));
  static_cast<void>(schema.text("description", limits.text_bytes_max));
  static_cast<void>(schema.boolean("strict"));  // the schema is always enforced
  const json* rules = schema.object("schema");
  if (!rules) return schema.refuse("schema", "'response_format.json_schema.schema' is required.");
  out.format = grammar_text{.text = dump_json(*rules)};
}

void read_other_formats(field_reader& fields, std::optional<api_error>& error, generation_request& out) {
  static constexpr guide ours[] = {{"guided_json", schema_of},     {"json_schema", schema_of},
                                   {"guided_regex", regex_of},     {"guided_choice", choice_of},
                                   {"guided_grammar", grammar_of}, {"grammar", grammar_of},
                                   {"ebnf", grammar_of},           {"regex", regex_of}};
  read_guides(fields, ours, out);
  const json* outputs = fields.object("structured_outputs");
  if (outputs == nullptr) return;
  static constexpr guide inner_ones[] = {
      {"json", schema_of}, {"regex", regex_of}, {"choice", choice_of}, {"grammar", grammar_of}};
  field_reader inner(*outputs, "structured_outputs", error);
  read_guides(inner, inner_ones, out);
  if (inner.boolean("json_object").value_or(false) && !out.format)
    out.format = grammar_text{.text = R"({"type":"object"})"};
  if (inner.find("structural_tag") != nullptr) {
    inner.refuse("structural_tag",
                 "'structured_outputs.structural_tag' is not supported: use json, regex, choice or grammar.",
                 "unsupported_parameter");
  }
}

}  // namespace redline::api
