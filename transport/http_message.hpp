#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::transport {

struct http_header {
  std::string name, value;
  bool operator==(const http_header&) const = default;
};

/// The first header called `name`, whatever its case; null when there is none.
const std::string* find_header(const std::vector<http_header>& headers, std::string_view name);

/// Same letters, ignoring ASCII case: how HTTP compares names.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace redline::transport
