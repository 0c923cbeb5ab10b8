#pragma once

#include <chrono>
#include <cstdint>

namespace redline {

using microseconds = std::chrono::microseconds;
/// Monotonic time since an arbitrary start.
using instant = std::chrono::time_point<std::chrono::steady_clock, microseconds>;

/// The only access to time and randomness, so that a simulation can replace both.
class environment {
 public:
  virtual ~environment() = default;
  [[nodiscard]] virtual instant now() const = 0;
  /// Seconds since 1970, for people and protocols; never for intervals.
  [[nodiscard]] virtual std::int64_t unix_seconds() const = 0;
  /// 64 unpredictable bits.
  virtual std::uint64_t random() = 0;
};

/// The process's clock and the operating system's randomness.
environment& real_environment();

}  // namespace redline
