#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace redline {

/// exp and log from IEEE additions, multiplications and divisions only, within two units in the last place. The C
/// library's results differ in the last bit between its versions and, by the instructions it selects, between CPUs. Use
/// these if a comparison of such numbers decides which token a client gets.
///
/// They rely on binary64 arithmetic rounded to nearest, and no contraction of a * b + c (-ffp-contract=off).
inline double portable_log(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x == std::numeric_limits<double>::infinity()) return x;
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {  // make subnormal numbers normal
    x *= 0x1p54;
    exponent = -54;
  }
  auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFFu) | 0x3FF0000000000000u;
  double m = std::bit_cast<double>(bits);  // in [1, 2)
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  // log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the term after the last is below 1e-18 of the first.
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 23;
  for (int k = 21; k >= 3; k -= 2) sum = sum * z + 1.0 / k;
  constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  return exponent * ln2_high + (2 * s + (2 * s * (z * sum) + exponent * ln2_low));
}

inline double portable_exp(double x) {
  if (x != x) return x;
  if (x > 709.78) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  constexpr double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
  constexpr double rounder = 0x1.8p52;  // adding it leaves no bits below 1
  const double k = (x * 1.4426950408889634 + rounder) - rounder;
  const double r = (x - k * ln2_high) - k * ln2_low;  // |r| < 0.347
  double sum = 1.0 / 6227020800.0;                    // 1 / 13!
  constexpr double inverse_factorials[] = {
      1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5};
  for (const double c : inverse_factorials) sum = sum * r + c;
  const double result = 1 + (r + r * r * sum);
  // Two steps, so that a subnormal result is rounded once.
  const int whole = static_cast<int>(k), half = whole / 2;
  const auto power = [](int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); };
  return result * power(half) * power(whole - half);
}

}  // namespace redline
