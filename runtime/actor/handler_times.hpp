#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environment.hpp"

namespace redline::actor {

/// The longest handlers of one kind of actor, for the current and the previous minute. Thread-safe.
class handler_times {
 public:
  /// The process-wide entry for this kind, which is never destroyed.
  static handler_times& of(std::string_view kind);

  void note(microseconds took, instant now);
  /// The longest time in the last one to two minutes.
  [[nodiscard]] microseconds longest(instant now) const;

  struct reading {
    std::string kind;
    microseconds longest{0};
  };
  /// The readings of all kinds.
  static std::vector<reading> read_all(instant now);

 private:
  std::atomic<std::int64_t> minute_{0};
  std::atomic<std::int64_t> present_us_{0};
  std::atomic<std::int64_t> last_us_{0};
};

}  // namespace redline::actor
