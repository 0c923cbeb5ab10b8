#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/shapes/openai/edit_request.hpp"
#include "actors/messages/edit_messages.hpp"

namespace redline::api {

/// What a client sees of its edit session, in addition to the session's own report.
struct session_card {
  std::string id;
  std::string model;
  text::position_encoding units = text::position_encoding::utf16;
  cache_request cache;
  std::int64_t idle_seconds = 0;
};
std::string session_body(const session_card& card, const actors::session_shown& shown);
std::string file_body(const actors::file_shown& shown);

api_error error_of(const actors::refusal& why, std::string_view request_id = {});

}  // namespace redline::api
