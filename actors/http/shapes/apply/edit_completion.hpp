#pragma once

#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::apply {

/// A body of POST /v1/edit/completions, in Inception's form: a chat with one user message, which tells a file, what was
/// edited last and the region to rewrite between tags. The model is told what the tags mean; the region as it is
/// becomes the prediction, and the answer a chat's, with the new region in a code fence.
api::checked<api::generation_request> parse_edit_completion(std::string_view body,
                                                            const api::request_limits& limits = {});

}  // namespace redline::apply
