#pragma once

#include <string>
#include <string_view>

#include "actors/http/fields/json.hpp"
#include "runtime/tools/tool_set.hpp"

// Parts of answers that several APIs write the same way.

namespace redline::api {

/// A call's arguments, parsed as a JSON object; empty if the end of the answer cut them off.
json arguments_object(const tools::tool_call& call);

/// One server-sent event with a name.
std::string named_event(std::string_view name, const json& data);

}  // namespace redline::api
