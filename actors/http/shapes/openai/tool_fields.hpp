#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`, or their older names `functions` and `function_call`. Omits
/// tools of other types than function, which a server would have to run itself. nullopt if no tool is left.
std::optional<tools::tool_set> read_tools(field_reader& fields, std::optional<api_error>& error,
                                          const request_limits& limits);

/// A tool's name as requests and messages may contain it; nullopt after a refusal.
std::optional<std::string> read_tool_name(field_reader& fields, const request_limits& limits);

/// Adds a tool of another endpoint. parameters: a schema, or null.
void add_tool(field_reader& fields, std::string_view field, tools::tool one, const request_limits& limits,
              tools::tool_set& out);

}  // namespace redline::api
