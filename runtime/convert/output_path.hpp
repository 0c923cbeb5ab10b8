#pragma once

#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::convert {

/// Refuses to write `out` where that would destroy one of the files that are still being read: the same file under any
/// name or link.
result<void> keep_sources(const std::string& out, std::span<const std::string> sources);

}  // namespace redline::convert
