#pragma once

namespace redline::cost {

/// Follows a quantile of a stream of positive numbers without storing them. Each number above the value moves it up and
/// each one below moves it down, in steps that balance when `share` of the numbers are below (stochastic approximation,
/// Robbins and Monro, 1951; here by ratios).
class running_quantile {
 public:
  /// pace: the size of a step up plus a step down, as a ratio of the value.
  constexpr running_quantile(double share, double start, double pace) : share_(share), pace_(pace), value_(start) {}

  constexpr void observe(double x) { value_ *= x > value_ ? 1 + pace_ * share_ : 1 - pace_ * (1 - share_); }
  [[nodiscard]] constexpr double value() const { return value_; }

 private:
  double share_;
  double pace_;
  double value_;
};

}  // namespace redline::cost
