#pragma once

#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::apply {

/// A body of POST /v1/code/apply in Relace's form: a file ("initialCode") and an update to it ("editSnippet"), which
/// may omit unchanged text. It becomes a request for the whole new file, with the old file as its prediction.
api::checked<api::generation_request> parse_apply(std::string_view body, const api::request_limits& limits = {});

/// A body of POST /v1/apply/completions in Inception's form: a chat with one user message, which contains the file and
/// the update between tags.
api::checked<api::generation_request> parse_apply_completion(std::string_view body,
                                                             const api::request_limits& limits = {});

}  // namespace redline::apply
