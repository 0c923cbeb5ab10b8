#include "runtime/base/version.hpp"

namespace redline {

std::string version() { return REDLINE_VERSION; }

}  // namespace redline
