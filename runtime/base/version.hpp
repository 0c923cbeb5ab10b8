#pragma once

#include <string>

namespace redline {

/// "1.2.3", of this build.
std::string version();

}  // namespace redline
