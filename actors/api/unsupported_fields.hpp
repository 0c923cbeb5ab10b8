#pragma once

#include <optional>

#include "actors/api/api_error.hpp"
#include "actors/api/json.hpp"
#include "actors/api/request.hpp"

namespace redline::api {

/// Refuses fields that other servers honour and we do not, unless their value asks for nothing. A field that is in no
/// list of ours is left alone.
std::optional<api_error> find_unsupported(const json& body, endpoint from);

}  // namespace redline::api
