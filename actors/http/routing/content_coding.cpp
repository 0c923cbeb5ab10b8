#include "actors/http/routing/content_coding.hpp"

#include "actors/http/routing/headers.hpp"
#include "runtime/base/size_limits.hpp"
#include "transport/gzip.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {

api::checked<content_coding> content_coding::read(const header_list& headers, const std::string& body) {
  using transport::equal_ignoring_case;
  const std::string* name = find_header(headers, "content-encoding");
  if (name == nullptr || name->empty() || equal_ignoring_case(*name, "identity")) {
    return content_coding{.bytes = body.size()};
  }
  if (!equal_ignoring_case(*name, "gzip") && !equal_ignoring_case(*name, "x-gzip")) {
    return api::api_error{
        415,
        "invalid_request_error",
        "Content-Encoding '" + name->substr(0, 64) + "' is not supported: send gzip, or the body without an encoding.",
        "Content-Encoding",
        "",
        {}};
  }
  const auto bytes = transport::read_gzip_size(body);
  if (!bytes) return api::bad_field("", "The request body is not gzip, though Content-Encoding says so.");
  if (*bytes > sizes::http_body_bytes_max) {
    return api::api_error{413,
                          "invalid_request_error",
                          "The request's body is too large: at most " + std::to_string(sizes::http_body_bytes_max) +
                              " bytes are allowed, and it has " + std::to_string(*bytes) + " when unpacked.",
                          "",
                          "request_too_large",
                          {}};
  }
  return content_coding{true, *bytes};
}

api::checked<std::string> content_coding::unpack(std::string body) const {
  if (!is_gzip) return body;
  auto contents = transport::gunzip(body);
  if (!contents) return api::bad_field("", "The request body is " + contents.error().context + ".");
  return std::move(*contents);
}

}  // namespace redline::actors
