#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace redline {

/// What the system says about the last failed call.
inline std::string errno_text() { return std::system_category().message(errno); }

}  // namespace redline
