#pragma once

#include <cstdint>

namespace redline::grammar {

/// Counts units of work, of about 10 ns each: bytes tried, texts compared, parts compiled. Limits and tests count work
/// in them because seconds depend on the machine.
class step_count {
 public:
  /// `limit` is the number of steps above which `is_over` is true; by default there is no limit.
  explicit step_count(std::uint64_t limit = UINT64_MAX) : limit_(limit) {}

  void add(std::uint64_t steps = 1) { taken_ += steps; }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] bool is_over() const { return taken_ > limit_; }
  /// Steps until the limit; 0 when it is reached.
  [[nodiscard]] std::uint64_t left() const { return taken_ < limit_ ? limit_ - taken_ : 0; }

 private:
  std::uint64_t limit_;
  std::uint64_t taken_ = 0;
};

}  // namespace redline::grammar
