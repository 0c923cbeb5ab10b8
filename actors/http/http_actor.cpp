#include "actors/http/http_actor.hpp"

namespace redline::actors {

std::vector<transport::http_header> to_headers(const header_list& list) {
  std::vector<transport::http_header> headers;
  for (const auto& [name, value] : list) headers.push_back({name, value});
  return headers;
}

api::api_error explain_loss(const failure& why) {
  if (why.code == errc::malformed_message) {
    return {413, "invalid_request_error", "The request is too large.", "", "request_too_large", {}};
  }
  auto error = api::error_of({errc::not_ready, ""});
  error.message = "The server cannot take the request now; try again shortly.";
  error.code = "overloaded";
  error.retry_after_seconds = 1;
  return error;
}

}  // namespace redline::actors
