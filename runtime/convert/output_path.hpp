#pragma once

#include <span>
#include <string>

#include "runtime/base/result.hpp"

namespace redline::convert {

/// Refuses to write `out` where that would destroy one of the files that are still being read: the same file under any
/// name or link, or the one that stands where `gguf_writer` keeps its temporary file.
result<void> keep_sources(const std::string& out, std::span<const std::string> sources);

}  // namespace redline::convert
