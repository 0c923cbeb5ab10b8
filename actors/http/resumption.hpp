#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/request/event_id.hpp"
#include "actors/http/request/generation_request.hpp"
#include "actors/pool/served_model.hpp"

namespace redline::actors {

/// Lets a client resume a stream at any server that has the same model. The id of the last event it received says what
/// is still to be sent. The answer is made again, which gives the same bytes.

/// The part of a resumed stream that the client already has; nullopt if the request is a new one. eviction: the
/// server's defaults for what the request leaves open. last_event_id: the header, empty if absent.
api::checked<std::optional<api::event_id>> read_resumption(const served_model& model,
                                                           const api::generation_request& asked,
                                                           const kv::eviction_options& eviction,
                                                           const std::string& last_event_id);

/// The id of the event before the first one.
[[nodiscard]] api::event_id first_event_id(const served_model& model, const api::generation_request& asked,
                                           const kv::eviction_options& eviction, std::uint64_t high, std::uint64_t low,
                                           std::int64_t created_seconds);

/// The error for a client whose beginning differs from that of the answer as it is now.
[[nodiscard]] api::api_error diverged_answer();

}  // namespace redline::actors
