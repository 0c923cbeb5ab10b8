#include "actors/http/shapes/openai/tool_fields.hpp"

#include <algorithm>
#include <utility>

#include "actors/http/shapes/openai/message_reader.hpp"

namespace redline::api {
namespace {

bool is_name_byte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("_-.:/").find(c) != std::string_view::npos;
}

/// {"name", "description", "parameters", "strict"}
void read_function(field_reader& fields, const request_limits& limits, tools::tool_set& out) {
  tools::tool one;
  one.name = read_tool_name(fields, limits).value_or("");
  one.description = fields.text("description", limits.tools_bytes_max).value_or("");
  if (const json* schema = fields.object("parameters")) one.parameters = *schema;
  one.strict = fields.boolean("strict").value_or(false);
  add_tool(fields, "name", std::move(one), limits, out);
}

void read_list(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
               std::string_view name, bool is_legacy, tools::tool_set& out) {
  const json* list = fields.array(name, limits.tools_max);
  if (!list) return;
  if (dump_json(*list).size() > limits.tools_bytes_max) {
    return fields.refuse(name, "'" + std::string(name) + "' has more than " + std::to_string(limits.tools_bytes_max) +
                                   " bytes: send fewer tools, or shorter descriptions and schemas.");
  }
  for (std::size_t i = 0; i < list->size() && !error; ++i) {
    const std::string at = indexed(name, i);
    if (!(*list)[i].is_object()) return fields.refuse_type(at, "an object", (*list)[i]);
    field_reader entry((*list)[i], at, error);
    if (is_legacy) {
      read_function(entry, limits, out);
      continue;
    }
    const auto type = entry.text("type", limits.name_bytes_max);
    if (!type) return entry.refuse("type", "'" + entry.path_of("type") + "' is required.");
    if (*type != "function") continue;
    const json* function = entry.object("function");
    if (!function) return entry.refuse("function", "'" + entry.path_of("function") + "' is required.");
    field_reader inner(*function, entry.path_of("function"), error);
    read_function(inner, limits, out);
  }
  out.is_legacy = is_legacy;
}

void allow(field_reader& fields, const request_limits& limits, tools::tool_set& out) {
  const auto name = read_tool_name(fields, limits);
  if (!name) return;
  const bool is_offered = std::any_of(out.all.begin(), out.all.end(), [&](const auto& t) { return t.name == *name; });
  if (!is_offered) {
    return fields.refuse("name", "'" + fields.path_of("name") + "' is '" + name->substr(0, 64) +
                                     "', which is not one of the request's tools.");
  }
  out.allowed.push_back(*name);
}

/// {"mode": "auto" | "required", "tools": [{"type": "function", "function": {"name"}}, ...]}
void read_allowed(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                  tools::tool_set& out) {
  const auto mode = fields.text("mode", limits.name_bytes_max);
  if (mode != "auto" && mode != "required") {
    return fields.refuse("mode", "'" + fields.path_of("mode") + "' must be auto or required.");
  }
  out.call = mode == "required" ? tools::choice::required : tools::choice::automatic;
  const json* list = fields.array("tools", limits.tools_max);
  if (!list || list->empty()) return fields.refuse("tools", "'" + fields.path_of("tools") + "' must name a tool.");
  for (std::size_t i = 0; i < list->size() && !error; ++i) {
    const std::string at = indexed("tools", i);
    if (!(*list)[i].is_object()) return fields.refuse_type(at, "an object", (*list)[i]);
    field_reader entry((*list)[i], fields.path_of(at), error);
    const json* function = entry.object("function");
    if (!function) return entry.refuse("function", "'" + entry.path_of("function") + "' is required.");
    field_reader inner(*function, entry.path_of("function"), error);
    allow(inner, limits, out);
  }
}

void read_choice(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 tools::tool_set& out) {
  const std::string name = out.is_legacy ? "function_call" : "tool_choice";
  const json* given = fields.find(name);
  if (!given) return;
  if (*given == "auto" || *given == "none" || (*given == "required" && !out.is_legacy)) {
    out.call = *given == "none"       ? tools::choice::none
               : *given == "required" ? tools::choice::required
                                      : tools::choice::automatic;
    return;
  }
  if (!given->is_object()) {
    return fields.refuse(name, "'" + name + "' must be " + (out.is_legacy ? "none, auto" : "none, auto, required") +
                                   ", or an object that names a tool; found " + show_json(*given) + ".");
  }
  if (out.is_legacy) {
    field_reader inner(*given, name, error);
    allow(inner, limits, out);
  } else {
    field_reader outer(*given, name, error);
    const auto type = outer.text("type", limits.name_bytes_max);
    if (type == "allowed_tools") {
      const json* allowed = outer.object("allowed_tools");
      if (!allowed) return outer.refuse("allowed_tools", "'" + outer.path_of("allowed_tools") + "' is required.");
      field_reader inner(*allowed, outer.path_of("allowed_tools"), error);
      return read_allowed(inner, error, limits, out);
    }
    if (type != "function") {
      return outer.refuse("type", "'" + outer.path_of("type") + "' must be function or allowed_tools.");
    }
    const json* function = outer.object("function");
    if (!function) return outer.refuse("function", "'" + outer.path_of("function") + "' is required.");
    field_reader inner(*function, outer.path_of("function"), error);
    allow(inner, limits, out);
  }
  out.call = tools::choice::required;
  out.many = false;  // the named tool is called once
}

}  // namespace

std::optional<std::string> read_tool_name(field_reader& fields, const request_limits& limits) {
  auto name = fields.text("name", limits.name_bytes_max);
  if (!name || name->empty()) {
    fields.refuse("name", "'" + fields.path_of("name") + "' is required.");
    return std::nullopt;
  }
  if (name->size() > limits.tool_name_bytes_max || !std::all_of(name->begin(), name->end(), is_name_byte)) {
    fields.refuse("name", "'" + fields.path_of("name") + "' must have 1 to " +
                              std::to_string(limits.tool_name_bytes_max) +
                              " letters, digits and characters of '_-.:/', found '" + name->substr(0, 64) + "'.");
    return std::nullopt;
  }
  return name;
}

void add_tool(field_reader& fields, std::string_view field, tools::tool one, const request_limits& limits,
              tools::tool_set& out) {
  if (out.all.size() >= limits.tools_max) {
    return fields.refuse(field, "Expected at most " + std::to_string(limits.tools_max) + " tools, found more.");
  }
  if (std::any_of(out.all.begin(), out.all.end(), [&](const auto& t) { return t.name == one.name; })) {
    return fields.refuse(field, "'" + fields.path_of(field) + "' is '" + one.name.substr(0, 64) +
                                    "', which is also the name of another tool of this request.");
  }
  out.all.push_back(std::move(one));
}

std::optional<tools::tool_set> read_tools(field_reader& fields, std::optional<api_error>& error,
                                          const request_limits& limits) {
  tools::tool_set set;
  read_list(fields, error, limits, "tools", false, set);
  if (set.all.empty()) read_list(fields, error, limits, "functions", true, set);
  if (set.all.empty()) {
    const json* choice = fields.find("tool_choice");
    if (choice && *choice != "none" && *choice != "auto") {
      fields.refuse("tool_choice", "'tool_choice' needs 'tools' with at least one function.");
    }
    return std::nullopt;
  }
  read_choice(fields, error, limits, set);
  if (!fields.boolean("parallel_tool_calls").value_or(true)) set.many = false;
  if (set.is_legacy) set.many = false;  // an answer can contain one function_call
  return set;
}

}  // namespace redline::api
