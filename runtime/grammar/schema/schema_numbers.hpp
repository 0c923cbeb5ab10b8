#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.hpp"
#include "runtime/grammar/syntax/grammar_rules.hpp"

namespace redline::grammar {

/// A number exactly as it is written, without exponent.
struct decimal {
  bool is_negative = false;  // false for zero
  std::string whole;         // without leading zeros; empty for 0
  std::string fraction;      // without trailing zeros

  static decimal read(const nlohmann::ordered_json& number);
  /// Digits before and after the point, with zeros that are dropped.
  static decimal of_digits(std::string whole, std::string fraction);
  [[nodiscard]] bool is_whole() const { return fraction.empty(); }
  [[nodiscard]] bool is_zero() const { return whole.empty() && fraction.empty(); }
  [[nodiscard]] std::strong_ordering operator<=>(const decimal& other) const;
  bool operator==(const decimal&) const = default;
};

/// What a schema asserts about numbers.
struct number_bounds {
  std::optional<decimal> low, high;
  bool is_low_open = false, is_high_open = false;  // the bound itself is excluded
  std::vector<decimal> multiples;                  // the number is a multiple of each of them

  auto operator<=>(const number_bounds&) const = default;
  bool operator==(const number_bounds&) const = default;
  void add_low(const decimal& bound, bool is_open);
  void add_high(const decimal& bound, bool is_open);
  [[nodiscard]] bool are_empty() const;
  /// The whole numbers within them, in order; nothing if there are about `count_max` of them or more.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> wholes(std::size_t count_max) const;
};

enum class number_kind : std::uint8_t { whole, fractional, any };

/// The numbers within the bounds: with at most 20 digits before and after the point, but 15 after it beside a bound
/// that is excluded and where whole numbers are. Only numbers without bounds may have an exponent, of at most 2 digits.
/// Fails if the bounds cannot be written as rules.
[[nodiscard]] result<part> numbers_within(number_bounds bounds, number_kind kind);

}  // namespace redline::grammar
