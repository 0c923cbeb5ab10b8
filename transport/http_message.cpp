#include "transport/http_message.hpp"

#include <algorithm>

namespace redline::transport {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

const std::string* find_header(const std::vector<http_header>& headers, std::string_view name) {
  const auto at = std::find_if(headers.begin(), headers.end(),
                               [name](const http_header& h) { return equal_ignoring_case(h.name, name); });
  return at == headers.end() ? nullptr : &at->value;
}

}  // namespace redline::transport
