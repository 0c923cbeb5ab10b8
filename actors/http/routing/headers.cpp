#include "actors/http/routing/headers.hpp"

#include <algorithm>

#include "transport/http_message.hpp"

namespace redline::actors {

const std::string* find_header(const header_list& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (transport::equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

bool is_repeated(const header_list& headers, std::string_view name) {
  return std::count_if(headers.begin(), headers.end(),
                       [&](const auto& header) { return transport::equal_ignoring_case(header.first, name); }) > 1;
}

}  // namespace redline::actors
