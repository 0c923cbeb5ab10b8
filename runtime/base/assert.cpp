#include "runtime/base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace redline {

void assertion_failed(const char* file, int line, const char* condition, const char* why) noexcept {
  std::fprintf(stderr, "redline: broken invariant at %s:%d: %s (%s)\n", file, line, condition, why);
  std::abort();
}

}  // namespace redline
