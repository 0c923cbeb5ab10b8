#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/routing/headers.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// Protects a server without keys from the pages in a browser on the same machine: any page may send requests to
/// loopback (CSRF), and one whose name is made to mean loopback may read the answers (DNS rebinding).
struct browser_guard {
  bool checks_host = true;         // off where the server was told to serve everybody
  std::vector<std::string> hosts;  // besides addresses and localhost; also as origins

  /// 403 for a Host or an Origin of elsewhere, 415 for a page's body that is not said to be JSON. Clients that are no
  /// browsers send no Origin. knows_origin: the server was told of the Origin (cross_origin).
  [[nodiscard]] std::optional<api::api_error> check(const http_arrived& m, bool knows_origin = false) const;

 private:
  [[nodiscard]] bool is_named(std::string_view host) const;
};

}  // namespace redline::actors
