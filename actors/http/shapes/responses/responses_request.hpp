#pragma once

#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::responses {

/// A body of POST /v1/responses. Instructions and items become a chat request. Nothing is stored, whatever `store`
/// says, so a request that builds on a stored response is refused. Tools that are not functions and the items of such
/// tools are left out.
api::checked<api::generation_request> parse_responses(std::string_view body, const api::request_limits& limits = {});

}  // namespace redline::responses
