#include "actors/http/fields/api_error.hpp"

#include "actors/http/fields/json.hpp"

namespace redline::api {
namespace {

constexpr const char* invalid_request = "invalid_request_error";
constexpr const char* unavailable = "unavailable_error";
constexpr std::uint32_t retry_soon_seconds = 1;
constexpr std::uint32_t retry_after_loading_seconds = 5;

api_error internal_error(std::string_view request_id) {
  std::string message = "The server failed to process the request.";
  if (!request_id.empty()) message += " Request id: " + std::string(request_id) + ".";
  return {500, "server_error", std::move(message), "", "", {}};
}

}  // namespace

api_error bad_field(std::string param, std::string message, std::string code) {
  return {400, invalid_request, std::move(message), std::move(param), std::move(code), {}};
}

api_error not_found(std::string message, std::string code) {
  return {404, "not_found_error", std::move(message), "", std::move(code), {}};
}

api_error method_not_allowed(std::string_view method, std::string_view path, std::string allowed) {
  std::string message = std::string(method) + " is not allowed on " + std::string(path) + "; expected " + allowed + ".";
  return {405, invalid_request, std::move(message), "", "", {}, std::move(allowed)};
}

api_error not_supported(std::string message) {
  return {400, invalid_request, std::move(message), "", "unsupported_endpoint", {}};
}

api_error error_of(const failure& why, std::string_view request_id) {
  switch (why.code) {
    case errc::invalid_argument:
      return {400, invalid_request, why.context, "", "", {}};
    case errc::unsupported_format:
      return {400, invalid_request, why.context, "", "unsupported_parameter", {}};
    case errc::invalid_template:
      return {400, invalid_request, why.context, "messages", "invalid_template", {}};
    case errc::context_length_exceeded:
      return {400, invalid_request, why.context, "", "context_length_exceeded", {}};
    case errc::unauthorized:
      return {401, "authentication_error", why.context, "", "invalid_api_key", {}};
    case errc::model_not_found:
      return {404, "not_found_error", why.context, "model", "model_not_found", {}};
    case errc::version_conflict:
      return {409, "conflict_error", why.context, "", "session_version_mismatch", {}};
    case errc::queue_full:
    case errc::mailbox_full:
      return {429, "rate_limit_error", "The server's queue is full; try again shortly.",
              "",  "queue_full",       retry_soon_seconds};
    case errc::cancelled:
      return {499, invalid_request, "The client closed the request.", "", "cancelled", {}};
    case errc::pool_exhausted:
      return {503, unavailable,  "The server is out of memory for requests; try again shortly.",
              "",  "overloaded", retry_soon_seconds};
    case errc::unreachable:
      return {503, unavailable, "No worker can take the request now.", "", "no_worker", retry_soon_seconds};
    case errc::session_lost:
      return {503, unavailable,    "The worker that computed the answer was lost; try again.",
              "",  "session_lost", retry_soon_seconds};
    case errc::not_ready:
      return {503, unavailable, "The model is loading.", "", "loading", retry_after_loading_seconds};
    case errc::draining:
      return {503, unavailable, "The server is shutting down.", "", "draining", retry_soon_seconds};
    case errc::timed_out:
      return {504, "timeout_error", "The request's deadline passed.", "", "deadline_exceeded", {}};
    case errc::file_unreadable:
    case errc::file_malformed:
    case errc::malformed_message:
    case errc::unknown_message:
    case errc::io_error:
    case errc::internal:
    case errc::unusable_answer:
      break;
  }
  return internal_error(request_id);
}

std::string error_body(const api_error& why) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? json(nullptr) : json(text); };
  json object;
  object["message"] = why.message;
  object["type"] = why.type;
  object["param"] = text_or_null(why.param);
  object["code"] = text_or_null(why.code);
  return dump_json(json{{"error", std::move(object)}});
}

std::string error_event(const api_error& why) { return "data: " + error_body(why) + "\n\n"; }

std::vector<std::pair<std::string, std::string>> error_headers(const api_error& why) {
  std::vector<std::pair<std::string, std::string>> headers;
  if (why.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (!why.allowed_methods.empty()) headers.emplace_back("Allow", why.allowed_methods);
  if (why.status == 409) headers.emplace_back("x-should-retry", "false");  // SDKs retry a 409 by default
  if (const auto seconds = why.retry_after_seconds) {
    headers.emplace_back("Retry-After", std::to_string(*seconds));
    headers.emplace_back("retry-after-ms", std::to_string(std::uint64_t{*seconds} * 1000));
  }
  return headers;
}

}  // namespace redline::api
