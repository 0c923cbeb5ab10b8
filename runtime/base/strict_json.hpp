#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline {

/// Limits of a document, which apply while it is parsed, not afterwards.
struct json_limits {
  std::size_t depth_max = 64;
  std::size_t values_max = 2'000'000;
  std::size_t members_max = 4096;  // per object
};

/// Parses one document. Stricter than the library: it refuses repeated member names, which two readers could interpret
/// differently, and anything beyond the limits. Like the library, it refuses invalid UTF-8, numbers that a double
/// cannot represent, and text after the end. Json is nlohmann::ordered_json, which keeps the order of members and finds
/// them by a linear search, or nlohmann::json, which uses a search tree. Fails with errc::invalid_argument, "not valid
/// JSON: ...".
template<class Json>
result<Json> parse_json(std::string_view text, const json_limits& limits = {});

extern template result<nlohmann::json> parse_json(std::string_view text, const json_limits& limits);
extern template result<nlohmann::ordered_json> parse_json(std::string_view text, const json_limits& limits);

/// Formats the value on one line; bytes that are not UTF-8 become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& value);

/// Formats a value for an error message: short, on one line, in ASCII.
std::string show_json(const nlohmann::json& value);

}  // namespace redline
