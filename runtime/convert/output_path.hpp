#pragma once

#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::convert {

/// Refuses an `out` that would destroy one of the files still being read: the same file under any name or link.
result<void> keep_sources(const std::string& out, std::span<const std::string> sources);

}  // namespace redline::convert
