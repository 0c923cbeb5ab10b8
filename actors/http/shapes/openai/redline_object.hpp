#pragma once

#include <optional>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/request/generation_request.hpp"

namespace redline::api {

/// Reads the request's member "redline", which other servers lack: speculation, copy, files and eviction.
void read_redline(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                  generation_request& out);

}  // namespace redline::api
