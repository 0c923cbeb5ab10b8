#pragma once

#include <optional>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

/// Answer formats as several servers write them. Each becomes `generation_request::format`.
namespace redline::api {

/// {"type": "text" | "json_object" | "json_schema", "json_schema": {"name", "schema", "strict"}}. llama.cpp's clients
/// send a "schema" next to "json_object".
void read_format(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out);
/// guided_* and structured_outputs are vLLM's, regex is SGLang's, json_schema is llama.cpp's.
void read_other_formats(field_reader& fields, std::optional<api_error>& error, generation_request& out);

}  // namespace redline::api
