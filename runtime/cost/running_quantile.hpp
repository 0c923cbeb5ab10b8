#pragma once

namespace redline::cost {

/// Follows a quantile of positive numbers that come one after the other, without keeping them: each number above the
/// value moves it up, each below it down, in steps whose sizes balance where `share` of the numbers are below
/// (stochastic approximation, Robbins and Monro, 1951; here by ratios).
class running_quantile {
 public:
  /// pace: of a step up and a step down together, as a ratio of the value.
  constexpr running_quantile(double share, double start, double pace) : share_(share), pace_(pace), value_(start) {}

  constexpr void observe(double x) { value_ *= x > value_ ? 1 + pace_ * share_ : 1 - pace_ * (1 - share_); }
  [[nodiscard]] constexpr double value() const { return value_; }

 private:
  double share_;
  double pace_;
  double value_;
};

}  // namespace redline::cost
