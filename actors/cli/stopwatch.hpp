#pragma once

#include <ctime>

namespace redline::actors::cli {

enum class clock_kind {
  wall,
  processor,  // CPU time of all threads; with one compute thread, the wall time on an idle machine
};

[[nodiscard]] inline double seconds_on(clock_kind kind) {
  timespec now{};
  ::clock_gettime(kind == clock_kind::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace redline::actors::cli
