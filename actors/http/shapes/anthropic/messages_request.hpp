#pragma once

#include <string>
#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::anthropic {

/// A body of POST /v1/messages. System text, content blocks, tools and tool results become a chat request. Only tools
/// that the client itself runs are included. max_tokens is required, as in Anthropic's API.
api::checked<api::generation_request> parse_messages(std::string_view body, const api::request_limits& limits = {});

/// A body of POST /v1/messages/count_tokens, which has no max_tokens.
api::checked<api::generation_request> parse_count(std::string_view body, const api::request_limits& limits = {});

}  // namespace redline::anthropic
