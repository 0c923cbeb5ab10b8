#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::studies {

/// Writes to a file, or to standard output for "-", and does nothing for an empty path.
result<void> write_json(const std::string& path, const nlohmann::ordered_json& what);

}  // namespace redline::studies
