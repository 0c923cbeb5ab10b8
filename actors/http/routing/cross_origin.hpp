#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/messages/http_messages.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {

/// The pages of other origins that a browser lets use the server (CORS). None by default. A page must send an API key
/// itself: cookies and the like, which a browser would send on its own, mean nothing here and are not invited.
struct cross_origin {
  std::vector<std::string> origins;  // "https://host", with a port if not the default; "*" means all

  /// Refuses a string that no browser sends as an origin.
  static result<cross_origin> make(std::vector<std::string> origins);

  [[nodiscard]] bool allows(std::string_view origin) const;
  [[nodiscard]] bool allows_all() const;
  /// The headers for each answer to such a page; empty if its origin is not allowed.
  [[nodiscard]] header_list headers_for(const std::string& origin) const;
  /// Answers a preflight request by adding what is allowed. request_headers: the headers of the preflight request.
  static void add_preflight(const header_list& request_headers, std::string_view methods, header_list& to);
};

}  // namespace redline::actors
