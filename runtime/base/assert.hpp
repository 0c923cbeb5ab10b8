#pragma once

namespace redline {

/// Prints file, line, condition and explanation to standard error, then ends the process.
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition, const char* why) noexcept;

}  // namespace redline

/// Checks an internal invariant, in every build. External input must never be able to violate it.
#define REDLINE_ASSERT(condition, why)                                  \
  do {                                                                  \
    if (!(condition)) [[unlikely]]                                      \
      ::redline::assertion_failed(__FILE__, __LINE__, #condition, why); \
  } while (false)
