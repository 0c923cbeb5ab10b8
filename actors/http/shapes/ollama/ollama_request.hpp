#pragma once

#include <string>
#include <string_view>

#include "actors/http/request/generation_request.hpp"

namespace redline::ollama {

/// A body of POST /api/chat. Streams by default, and samples by Ollama's defaults.
api::checked<api::generation_request> parse_chat(std::string_view body, const api::request_limits& limits = {});

/// A body of POST /api/generate: a prompt for the model's chat template, or with "raw" a text to continue.
api::checked<api::generation_request> parse_generate(std::string_view body, const api::request_limits& limits = {});

/// The model's name in a body of POST /api/show, which may call it "model" or "name".
api::checked<std::string> parse_show(std::string_view body);

/// A model's name without the tag that Ollama's clients append to names that have no tag.
std::string without_latest(std::string name);

}  // namespace redline::ollama
