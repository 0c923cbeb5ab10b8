#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::transport {

struct http_header {
  std::string name, value;
  bool operator==(const http_header&) const = default;
};

/// The first header called `name`, ignoring case; null if there is none.
const std::string* find_header(const std::vector<http_header>& headers, std::string_view name);

/// Compares as HTTP compares names: ignoring ASCII case.
bool equal_ignoring_case(std::string_view a, std::string_view b);

struct http_request {
  std::string method;
  std::string path;   // percent-decoded, without the query
  std::string query;  // as sent, without the question mark
  std::vector<http_header> headers;
  std::string body;
  std::string peer;  // numeric address of the client

  /// The first header called `name`, ignoring case; null if there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

}  // namespace redline::transport
