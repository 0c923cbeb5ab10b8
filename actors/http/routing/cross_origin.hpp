#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actors/messages/http_messages.hpp"
#include "runtime/base/result.hpp"

namespace redline::actors {

/// Which pages of other origins a browser lets use the server (CORS). None unless told. A page must send an API key
/// itself: cookies and the like, which a browser would send of its own accord, mean nothing here and are not invited.
struct cross_origin {
  std::vector<std::string> origins;  // "https://host", with a port where it is not the usual one; "*": all

  /// Refuses what no browser sends as an origin.
  static result<cross_origin> make(std::vector<std::string> origins);

  [[nodiscard]] bool allows(std::string_view origin) const;
  [[nodiscard]] bool allows_all() const;
  /// For each answer to such a page; empty where it is not allowed.
  [[nodiscard]] header_list headers_for(const std::string& origin) const;
  /// For the browser's question before it sends a request: what may come. request_headers: those of the question.
  static void add_preflight(const header_list& request_headers, std::string_view methods, header_list& to);
};

}  // namespace redline::actors
