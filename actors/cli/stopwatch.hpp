#pragma once

#include <ctime>

namespace redline::actors::cli {

enum class clock_kind {
  wall,
  processor,  // of this process, all threads together: with one thread of compute what an idle machine's wall would say
};

[[nodiscard]] inline double seconds_on(clock_kind kind) {
  timespec now{};
  ::clock_gettime(kind == clock_kind::wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace redline::actors::cli
