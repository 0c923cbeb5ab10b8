#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/outcome.hpp"
#include "runtime/base/result.hpp"

namespace redline::api {

/// What a client is told when something went wrong, as OpenAI's error object and its HTTP status.
struct api_error {
  unsigned status = 500;
  std::string type = "server_error";
  std::string message;
  std::string param;  // the field at fault, such as "messages[1].content"; empty: none
  std::string code;   // empty: none
  std::optional<std::uint32_t> retry_after_seconds;
  std::string allowed_methods;  // of a 405

  bool operator==(const api_error&) const = default;
};

/// 400 for one field. code: empty, "unsupported_parameter", ...
api_error bad_field(std::string param, std::string message, std::string code = {});
api_error not_found(std::string message, std::string code = {});
/// allowed: methods, as in the header Allow.
api_error method_not_allowed(std::string_view method, std::string_view path, std::string allowed);
/// For endpoints that clients know and we lack. 400: SDKs try again what is answered with 5xx.
api_error not_supported(std::string message);

/// What a failure inside means to a client. Bugs and machine trouble become a text without internals that names the
/// request, by which the log tells more. 499 (cancelled) is for logs: no client reads it.
api_error error_of(const failure& why, std::string_view request_id = {});

/// {"error":{"message","type","param","code"}}
std::string error_body(const api_error& why);
/// As one server-sent event; the stream ends after it, without [DONE].
std::string error_event(const api_error& why);
/// Names and values that belong to the error: Retry-After, WWW-Authenticate, ... without Content-Type.
std::vector<std::pair<std::string, std::string>> error_headers(const api_error& why);

/// A value, or what to tell the client.
template<class T>
using checked = outcome<T, api_error>;

}  // namespace redline::api
