#pragma once

#include <cstdint>

namespace redline {

using pause_function = void (*)();
/// Called at pause points on this thread, unless null. It may throw to end the computation. See `actor::job_fibers`.
inline constinit thread_local pause_function pause_hook = nullptr;
inline constinit thread_local std::uint32_t pause_points_passed = 0;

/// A point in a long computation where its thread may switch to another one and return later. Use it only where no
/// thread-local state is in use, and no lock is held that another computation may need.
inline void pause_point() {
  constexpr std::uint32_t between = 1U << 10;
  if (++pause_points_passed % between == 0 && pause_hook != nullptr) pause_hook();
}

}  // namespace redline
