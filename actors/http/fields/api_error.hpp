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

/// An error as a client sees it: OpenAI's error object and its HTTP status.
struct api_error {
  unsigned status = 500;
  std::string type = "server_error";
  std::string message;
  std::string param;  // the field at fault, such as "messages[1].content"; empty if none
  std::string code;   // empty if none
  std::optional<std::uint32_t> retry_after_seconds;
  std::string allowed_methods;  // for a 405

  bool operator==(const api_error&) const = default;
};

/// A 400 for one field. code: empty, "unsupported_parameter", ...
api_error bad_field(std::string param, std::string message, std::string code = {});
api_error not_found(std::string message, std::string code = {});
/// allowed: methods, as in the header Allow.
api_error method_not_allowed(std::string_view method, std::string_view path, std::string allowed);
/// For endpoints that clients know and this server lacks. The status is 400, because SDKs retry after a 5xx.
api_error not_supported(std::string message);

/// Maps an internal failure to a client's error. Bugs and machine failures become a text without internals that names
/// the request, whose log lines say more. 499 (canceled) is only for logs, since no client reads it.
api_error error_of(const failure& why, std::string_view request_id = {});

/// {"error":{"message","type","param","code"}}
std::string error_body(const api_error& why);
/// The error as one server-sent event. The stream ends after it, without [DONE].
std::string error_event(const api_error& why);
/// The error's own headers, such as Retry-After and WWW-Authenticate, without Content-Type.
std::vector<std::pair<std::string, std::string>> error_headers(const api_error& why);

/// A value, or the error for the client.
template<class T>
using checked = outcome<T, api_error>;

}  // namespace redline::api
