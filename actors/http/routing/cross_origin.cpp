#include "actors/http/routing/cross_origin.hpp"

#include <algorithm>

#include "actors/http/routing/headers.hpp"
#include "transport/http_message.hpp"

namespace redline::actors {
namespace {

// In addition to the headers that any page may read: those that SDKs act on and users look at.
constexpr const char* readable_headers =
    "x-request-id, Retry-After, retry-after-ms, openai-processing-ms, WWW-Authenticate";
// SDKs send about a dozen headers of their own (x-stainless-...), so the browser may send what it asks for, up to this.
constexpr std::size_t asked_headers_bytes_max = 2048;
constexpr const char* remember_seconds = "600";

bool is_origin(std::string_view text) {
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return false;
  const auto host = text.substr(scheme_end + 3);
  return !host.empty() && host.find_first_of("/?#@* ,") == std::string_view::npos;
}

}  // namespace

result<cross_origin> cross_origin::make(std::vector<std::string> origins) {
  for (auto& one : origins) {
    if (one.ends_with('/')) one.pop_back();
    if (one != "*" && !is_origin(one)) {
      return failure{
          errc::invalid_argument,
          "--cors-origin: expected an origin such as https://example.org or http://localhost:3000, or *, found '" +
              one + "'"};
    }
  }
  return cross_origin{std::move(origins)};
}

bool cross_origin::allows(std::string_view origin) const {
  return std::any_of(origins.begin(), origins.end(),
                     [&](const std::string& one) { return one == "*" || transport::equal_ignoring_case(one, origin); });
}

bool cross_origin::allows_all() const { return std::find(origins.begin(), origins.end(), "*") != origins.end(); }

header_list cross_origin::headers_for(const std::string& origin) const {
  if (!allows(origin)) return {};
  return {
      {"Access-Control-Allow-Origin", origin}, {"Vary", "Origin"}, {"Access-Control-Expose-Headers", readable_headers}};
}

void cross_origin::add_preflight(const header_list& request_headers, std::string_view methods, header_list& to) {
  to.emplace_back("Access-Control-Allow-Methods", std::string(methods));
  if (const auto* asked = find_header(request_headers, "access-control-request-headers");
      asked != nullptr && asked->size() <= asked_headers_bytes_max) {
    to.emplace_back("Access-Control-Allow-Headers", *asked);
  }
  if (find_header(request_headers, "access-control-request-private-network") != nullptr) {
    to.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  to.emplace_back("Access-Control-Max-Age", remember_seconds);
}

}  // namespace redline::actors
