#pragma once

namespace redline {

/// Prints file, line, condition and explanation to standard error, then ends the process.
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition, const char* why) noexcept;

}  // namespace redline

/// Checks an invariant of ours, in every build. Never reachable from bytes that came from outside.
#define REDLINE_ASSERT(condition, why)                                  \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::redline::assertion_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)
