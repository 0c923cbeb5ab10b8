#pragma once

#include <optional>

#include "actors/http/openai/api_error.hpp"
#include "actors/http/openai/json.hpp"
#include "actors/http/openai/request.hpp"

namespace redline::api {

/// Refuses fields that other servers honour and we do not, unless their value asks for nothing. A field that is in no
/// list of ours is left alone.
std::optional<api_error> find_unsupported(const json& body, endpoint from);

}  // namespace redline::api
