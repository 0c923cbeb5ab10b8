#pragma once

#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::apply {

/// A body of POST /v1/edit/completions in Inception's form: a chat with one user message, which contains a file, the
/// last edits and the region to rewrite between tags. The model is told what the tags mean. The present region becomes
/// the prediction. The answer is a chat answer with the new region in a code fence.
api::checked<api::generation_request> parse_edit_completion(std::string_view body,
                                                            const api::request_limits& limits = {});

}  // namespace redline::apply
