#pragma once

#include <string>
#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::anthropic {

/// A body of POST /v1/messages: system, content blocks, tools and their results become a chat request. Tools other than
/// those that the client runs itself are left out. max_tokens is required, as there.
api::checked<api::generation_request> parse_messages(std::string_view body, const api::request_limits& limits = {});

/// A body of POST /v1/messages/count_tokens: the same without max_tokens.
api::checked<api::generation_request> parse_count(std::string_view body, const api::request_limits& limits = {});

}  // namespace redline::anthropic
