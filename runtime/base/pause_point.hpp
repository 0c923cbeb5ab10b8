#pragma once

#include <cstdint>

namespace redline {

using pause_function = void (*)();
/// Called at a pause point on this thread; null: nothing is. May throw to end the computation. See `actor::job_fibers`.
inline constinit thread_local pause_function pause_hook = nullptr;
inline constinit thread_local std::uint32_t pause_points_passed = 0;

/// A place in a long computation where its thread may go on with another one, and with this one later. Only where
/// nothing that belongs to the thread is in use, and no lock is held that another computation may want.
inline void pause_point() {
  constexpr std::uint32_t between = 1U << 10;
  if (++pause_points_passed % between == 0 && pause_hook != nullptr) pause_hook();
}

}  // namespace redline
