#include "actors/http/routing/browser_guard.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "transport/http_message.hpp"

namespace redline::actors {
namespace {

using transport::equal_ignoring_case;

/// "name:80" and "[::1]:80" without the port.
std::string_view without_port(std::string_view authority) {
  const auto colon = authority.rfind(':');
  const auto bracket = authority.rfind(']');
  const bool has_port = colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  return has_port ? authority.substr(0, colon) : authority;
}

bool is_address(std::string_view host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (host.starts_with('[') && host.ends_with(']')) {
    return ::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), bytes.data()) == 1;
  }
  return ::inet_pton(AF_INET, std::string(host).c_str(), bytes.data()) == 1;
}

/// Clients resolve these names without a name server.
bool is_localhost(std::string_view host) {
  constexpr std::string_view name = "localhost", ending = ".localhost";
  return equal_ignoring_case(host, name) ||
         (host.size() > ending.size() && equal_ignoring_case(host.substr(host.size() - ending.size()), ending));
}

bool is_loopback(std::string_view host) {
  return is_localhost(host) || host == "[::1]" || (host.starts_with("127.") && is_address(host));
}

bool is_json(std::string_view content_type) {
  const auto type = content_type.substr(0, content_type.find_first_of("; \t"));
  return equal_ignoring_case(type, "application/json");
}

api::api_error forbidden(std::string message, std::string code) {
  return {403, "permission_error", std::move(message), "", std::move(code), {}};
}

/// Shortens client text for an error message.
std::string quote(std::string_view text) { return "'" + std::string(text.substr(0, 100)) + "'"; }

}  // namespace

bool browser_guard::is_named(std::string_view host) const {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const std::string& one) { return equal_ignoring_case(one, host); });
}

std::optional<api::api_error> browser_guard::check(const http_arrived& m, bool knows_origin) const {
  const std::string* host = find_header(m.headers, "host");
  if (const auto name = without_port(host != nullptr ? std::string_view(*host) : std::string_view());
      checks_host && !name.empty() && !is_address(name) && !is_localhost(name) && !is_named(name)) {
    return forbidden("A server without API keys does not accept requests to the host " + quote(name) +
                         "; use its address or localhost, or start it with --allowed-hosts.",
                     "host_not_allowed");
  }
  const std::string* origin = find_header(m.headers, "origin");
  if (origin == nullptr) return std::nullopt;
  const auto scheme_end = origin->find("://");
  const auto from =
      scheme_end == std::string::npos ? std::string_view() : std::string_view(*origin).substr(scheme_end + 3);
  const bool is_own = !from.empty() && host != nullptr && equal_ignoring_case(from, *host);
  if (const auto name = without_port(from); !is_own && !knows_origin && !is_loopback(name) && !is_named(name)) {
    return forbidden("A server without API keys does not accept requests from pages of " + quote(*origin) +
                         "; give it API keys, or start it with --allowed-hosts or --cors-origin.",
                     "origin_not_allowed");
  }
  const std::string* type = find_header(m.headers, "content-type");
  const bool has_body = m.method == "POST" || m.method == "PUT" || m.method == "PATCH";
  if (has_body && (type == nullptr || !is_json(*type))) {
    return api::api_error{
        415, "invalid_request_error", "Expected 'Content-Type: application/json' from a page in a browser.", "", "",
        {}};
  }
  return std::nullopt;
}

}  // namespace redline::actors
