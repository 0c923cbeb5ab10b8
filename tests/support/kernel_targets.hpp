#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "kernels/dispatch.hpp"

namespace redline::test {

/// The wanted targets that the build for this architecture has, even if this CPU cannot run them.
inline std::vector<const char*> targets_of_build(std::initializer_list<const char*> wanted) {
  std::vector<const char*> found;
  for (const char* name : wanted) {
    const auto is_it = [&](const kernels::target_info& t) { return t.name == name; };
    if (std::ranges::any_of(kernels::list_targets(), is_it)) found.push_back(name);
  }
  return found;
}

}  // namespace redline::test
