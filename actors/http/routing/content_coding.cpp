#include "actors/http/routing/content_coding.hpp"

#include <algorithm>

#include "actors/http/routing/headers.hpp"
#include "runtime/base/size_limits.hpp"
#include "transport/brotli.hpp"
#include "transport/gzip.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {

namespace {

using transport::equal_ignoring_case;

// JSON of source files shrinks to a tenth, and that of repetitive ones to a thirtieth.
constexpr std::size_t brotli_ratio_max = 64, brotli_bytes_min = std::size_t{64} << 10;

api::api_error too_large(const std::string& found) {
  return {413,
          "invalid_request_error",
          "The request's body is too large: at most " + std::to_string(sizes::http_body_bytes_max) +
              " bytes are allowed, and " + found + ".",
          "",
          "request_too_large",
          {}};
}

}  // namespace

api::checked<content_coding> content_coding::read(const header_list& headers, const std::string& body) {
  const std::string* name = find_header(headers, "content-encoding");
  if (name == nullptr || name->empty() || equal_ignoring_case(*name, "identity")) {
    return content_coding{.bytes = body.size()};
  }
  if (equal_ignoring_case(*name, "br")) {
    const std::size_t most = std::min<std::size_t>(sizes::http_body_bytes_max, body.size() * brotli_ratio_max);
    return content_coding{kind::brotli, std::max(most, brotli_bytes_min)};
  }
  if (!equal_ignoring_case(*name, "gzip") && !equal_ignoring_case(*name, "x-gzip")) {
    return api::api_error{415,
                          "invalid_request_error",
                          "Content-Encoding '" + name->substr(0, 64) +
                              "' is not supported: send gzip, br, or the body without an encoding.",
                          "Content-Encoding",
                          "",
                          {}};
  }
  const auto bytes = transport::read_gzip_size(body);
  if (!bytes) return api::bad_field("", "The request body is not gzip, though Content-Encoding says so.");
  if (*bytes > sizes::http_body_bytes_max) return too_large("it has " + std::to_string(*bytes) + " when unpacked");
  return content_coding{kind::gzip, *bytes};
}

api::checked<std::string> content_coding::unpack(std::string body) const {
  if (how == kind::none) return body;
  auto contents = how == kind::gzip ? transport::gunzip(body) : transport::read_brotli(body, bytes);
  if (contents) return std::move(*contents);
  const failure& why = contents.error();
  if (why.code == errc::unsupported_format) {
    return too_large("at most " + std::to_string(brotli_ratio_max) + " times its packed size, but " + why.context);
  }
  return api::bad_field("", "The request body is " + why.context + ".");
}

}  // namespace redline::actors
