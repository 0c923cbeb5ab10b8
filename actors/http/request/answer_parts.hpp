#pragma once

#include <string>
#include <string_view>

#include "actors/http/fields/json.hpp"
#include "runtime/tools/tool_set.hpp"

// What several APIs write the same way.

namespace redline::api {

/// A call's arguments as the object that they spell; empty where an answer's end has cut them.
json arguments_object(const tools::tool_call& call);

/// One server-sent event with a name.
std::string named_event(std::string_view name, const json& data);

}  // namespace redline::api
