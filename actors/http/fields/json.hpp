#pragma once

#include <nlohmann/json.hpp>

#include "runtime/base/strict_json.hpp"

namespace redline::api {

/// JSON whose members keep their order, because a chat template may iterate over them.
using json = nlohmann::ordered_json;

}  // namespace redline::api
