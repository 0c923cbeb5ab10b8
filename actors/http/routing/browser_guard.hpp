#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/fields/api_error.hpp"
#include "actors/http/routing/headers.hpp"
#include "actors/messages/http_messages.hpp"

namespace redline::actors {

/// Protects a server without keys from pages in a browser on the same machine. Any page may send requests to loopback
/// (CSRF), and a page whose name is made to resolve to loopback may read the answers (DNS rebinding).
struct browser_guard {
  bool checks_host = true;         // off if the server was configured to serve all hosts
  std::vector<std::string> hosts;  // in addition to addresses and localhost; also as origins

  /// Returns 403 for an external Host or Origin, and 415 for a page's body that is not declared as JSON. Clients that
  /// are not browsers send no Origin. knows_origin: the configuration allows the Origin (cross_origin).
  [[nodiscard]] std::optional<api::api_error> check(const http_arrived& m, bool knows_origin = false) const;

 private:
  [[nodiscard]] bool is_named(std::string_view host) const;
};

}  // namespace redline::actors
