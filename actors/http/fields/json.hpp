#pragma once

#include <nlohmann/json.hpp>

#include "runtime/base/strict_json.hpp"

namespace redline::api {

/// Keeps the order of members: a chat template may iterate over them.
using json = nlohmann::ordered_json;

}  // namespace redline::api
