#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::api {

/// Keeps the order of members: a chat template may iterate over them.
using json = nlohmann::ordered_json;

/// What a body may hold before it is looked at.
struct json_limits {
  std::size_t depth_max = 64;
  std::size_t values_max = 2'000'000;
  std::size_t members_max = 4096;  // per object: members are found by a linear search
};

/// Parses one document. Stricter than the library: no repeated member names, no depth or size beyond the limits. Like
/// it: no invalid UTF-8, no numbers outside what a double holds, nothing after the end.
result<json> parse_json(std::string_view text, const json_limits& limits = {});

/// On one line; bytes that are no UTF-8 become U+FFFD.
std::string dump_json(const json& value);

}  // namespace redline::api
