#include "actors/http/routing/headers.hpp"

#include "transport/http_message.hpp"

namespace redline::actors {

const std::string* find_header(const header_list& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (transport::equal_ignoring_case(key, name)) return &value;
  }
  return nullptr;
}

}  // namespace redline::actors
