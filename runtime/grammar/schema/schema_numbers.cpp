#include "runtime/grammar/schema/schema_numbers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/grammar/syntax/part_builders.hpp"

namespace redline::grammar {
namespace {

constexpr std::uint32_t digits_max = 15;
constexpr std::size_t listed_max = 1000;       // numbers of a range that are written one by one
constexpr std::uint64_t remainders_max = 512;  // a rule that counts remainders has this many repetitions of ten ways

part digit(char from = '0', char to = '9') {
  return characters({{static_cast<char32_t>(from), static_cast<char32_t>(to)}});
}
part any_digits(std::uint32_t least = 0) { return repeat(digit(), least, digits_max); }

/// Fractions with at least one digit that is not zero.
part nonzero_digits() { return sequence(repeat(digit('0', '0'), 0, digits_max), digit('1', '9'), any_digits()); }

std::string subtract_one(std::string digits) {
  auto at = digits.size();
  while (at > 0 && digits[at - 1] == '0') digits[--at] = '9';
  if (at == 0) return "";
  --digits[at - 1];
  return digits.front() == '0' ? digits.substr(1) : digits;
}
std::string add_one(std::string digits) {
  auto at = digits.size();
  while (at > 0 && digits[at - 1] == '9') digits[--at] = '0';
  if (at == 0) return "1" + digits;
  ++digits[at - 1];
  return digits;
}

/// Compares whole numbers without leading zeros.
std::strong_ordering compare(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() <=> b.size() : a.compare(b) <=> 0;
}

/// What follows the first `at` digits of a number between two of the same length, of which a limit that is null does
/// not apply any more.
part between(const std::string* low, const std::string* high, std::size_t at, std::size_t size) {
  if (low == nullptr && high == nullptr)
    return repeat(digit(), static_cast<std::uint32_t>(size - at), static_cast<std::uint32_t>(size - at));
  if (at == size) return literal("");
  const char from = low != nullptr ? (*low)[at] : '0', to = high != nullptr ? (*high)[at] : '9';
  std::vector<part> ways;
  const auto add = [&](char first, char last, const std::string* l, const std::string* h) {
    if (first <= last) ways.push_back(sequence(digit(first, last), between(l, h, at + 1, size)));
  };
  if (from == to) {
    add(from, to, low, high);
  } else {
    if (low != nullptr) add(from, from, low, nullptr);
    add(static_cast<char>(from + (low != nullptr ? 1 : 0)), static_cast<char>(to - (high != nullptr ? 1 : 0)), nullptr,
        nullptr);
    if (high != nullptr) add(to, to, nullptr, high);
  }
  return choice(std::move(ways));
}

/// Whole numbers from `low` to `high`; 0 is empty.
part wholes(std::string low, std::string high) {
  std::vector<part> ways;
  if (low.empty()) {
    ways.push_back(literal("0"));
    low = "1";
  }
  for (std::size_t size = low.size(); size <= high.size(); ++size) {
    const std::string first = size == low.size() ? low : "1" + std::string(size - 1, '0');
    const std::string last = size == high.size() ? high : std::string(size, '9');
    if (first <= last) ways.push_back(between(&first, &last, 0, size));
  }
  return choice(std::move(ways));
}

/// Fractions (with their point) of at least `low`: its digits.
part fractions_from(const std::string& low, bool is_open) {
  std::vector<part> ways;
  if (low.empty()) {
    ways.push_back(sequence(literal("."), is_open ? nonzero_digits() : any_digits(1)));
    if (!is_open) ways.push_back(literal(""));
    return choice(std::move(ways));
  }
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (low[i] < '9')
      ways.push_back(
          sequence(literal("." + low.substr(0, i)), digit(static_cast<char>(low[i] + 1), '9'), any_digits()));
  }
  ways.push_back(sequence(literal("." + low), is_open ? nonzero_digits() : any_digits()));
  return choice(std::move(ways));
}

/// Fractions of at most `high`.
part fractions_to(const std::string& high, bool is_open) {
  std::vector<part> ways;
  if (!high.empty() || !is_open) {
    ways.push_back(literal(""));
    ways.push_back(sequence(literal("."), repeat(digit('0', '0'), 1, digits_max)));
  }
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (i > 0) ways.push_back(literal("." + high.substr(0, i)));
    if (high[i] > '0')
      ways.push_back(
          sequence(literal("." + high.substr(0, i)), digit('0', static_cast<char>(high[i] - 1)), any_digits()));
  }
  if (!is_open && !high.empty()) ways.push_back(sequence(literal("." + high), repeat(digit('0', '0'), 0, digits_max)));
  return choice(std::move(ways));
}

/// Fractions between two that begin alike and then differ.
part fractions_between(const std::string& low, bool is_low_open, const std::string& high, bool is_high_open) {
  std::vector<part> ways;
  const auto digit_of = [](const std::string& s, std::size_t i) { return i < s.size() ? s[i] : '0'; };
  std::size_t same = 0;
  const std::size_t size = std::max(low.size(), high.size());
  while (same < size && digit_of(low, same) == digit_of(high, same)) ++same;
  std::string begin = "." + high.substr(0, same);
  begin.resize(same + 1, '0');
  if (same == size) {  // they are equal
    if (is_low_open || is_high_open) return choice();
    ways.push_back(sequence(literal("." + low), repeat(digit('0', '0'), low.empty() ? 1 : 0, digits_max)));
    if (low.empty()) ways.push_back(literal(""));
    return choice(std::move(ways));
  }
  const char from = digit_of(low, same), to = digit_of(high, same);
  const auto rest = [same](const std::string& s) { return s.size() > same + 1 ? s.substr(same + 1) : std::string(); };
  const auto without_point = [](part fractions) {
    for (auto& way : fractions.parts) {
      part* first = way.what == part::kind::sequence ? &way.parts.front() : &way;
      if (!first->text.empty()) first->text.erase(0, 1);
    }
    return fractions;
  };
  ways.push_back(sequence(literal(begin), digit(from, from), without_point(fractions_from(rest(low), is_low_open))));
  if (from + 1 < to)
    ways.push_back(
        sequence(literal(begin), digit(static_cast<char>(from + 1), static_cast<char>(to - 1)), any_digits()));
  ways.push_back(sequence(literal(begin), digit(to, to), without_point(fractions_to(rest(high), is_high_open))));
  if (low.find_first_not_of('0') == std::string::npos && !is_low_open) ways.push_back(literal(""));
  return choice(std::move(ways));
}

/// Numbers from `low` to `high` without signs; `high` may be missing.
part magnitudes(const decimal& low, bool is_low_open, const decimal* high, bool is_high_open, bool whole_only) {
  const std::string most(digits_max, '9');
  std::vector<part> ways;
  if (whole_only) {
    const bool is_above = !low.fraction.empty() || is_low_open;
    std::string first = is_above ? add_one(low.whole.empty() ? "0" : low.whole) : low.whole;
    std::string last = high == nullptr ? most : high->whole;
    if (high != nullptr && high->fraction.empty() && is_high_open) {
      if (last.empty()) return choice();
      last = subtract_one(last);
    }
    if (compare(last, most) > 0) last = most;
    return compare(first, last) > 0 ? choice() : wholes(first, last);
  }
  const auto text = [](const std::string& whole) { return literal(whole.empty() ? "0" : whole); };
  if (high != nullptr && low.whole == high->whole)
    return sequence(text(low.whole), fractions_between(low.fraction, is_low_open, high->fraction, is_high_open));
  ways.push_back(sequence(text(low.whole), fractions_from(low.fraction, is_low_open)));
  const std::string first = add_one(low.whole.empty() ? "0" : low.whole);
  std::string last = high == nullptr ? most : high->whole.empty() ? "" : subtract_one(high->whole);
  if (compare(last, most) > 0) last = most;
  if (!last.empty() && compare(first, last) <= 0)
    ways.push_back(sequence(wholes(first, last), repeat(sequence(literal("."), any_digits(1)), 0, 1)));
  if (high != nullptr && high->whole.size() <= digits_max)
    ways.push_back(sequence(text(high->whole), fractions_to(high->fraction, is_high_open)));
  return choice(std::move(ways));
}

part without_bounds(number_kind kind) {
  const part whole = choice(literal("0"), sequence(digit('1', '9'), repeat(digit(), 0, digits_max - 1)));
  const part sign = repeat(literal("-"), 0, 1);
  switch (kind) {
    case number_kind::whole:
      return choice(literal("0"), sequence(sign, digit('1', '9'), repeat(digit(), 0, digits_max - 1)));
    case number_kind::fractional:
      return sequence(sign, whole, literal("."), nonzero_digits());
    case number_kind::any:
      break;
  }
  return sequence(sign, whole, repeat(sequence(literal("."), any_digits(1)), 0, 1),
                  repeat(sequence(characters({{'E', 'E'}, {'e', 'e'}}),
                                  repeat(characters({{'+', '+'}, {'-', '-'}}), 0, 1), repeat(digit(), 1, 2)),
                         0, 1));
}

std::optional<std::int64_t> to_integer(const decimal& d) {
  if (!d.is_whole() || d.whole.size() > digits_max) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : d.whole) value = value * 10 + (c - '0');
  return d.is_negative ? -value : value;
}

/// The fractions with which a number is a multiple of `of`, which must divide a power of ten; empty if it does not.
std::vector<part> fractions_of_multiples(const decimal& of) {
  std::string digits = of.whole + of.fraction;
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > 6 || of.fraction.size() > 6) return {};
  std::uint64_t step = 0, power = 1;
  for (const char c : digits) step = step * 10 + static_cast<std::uint64_t>(c - '0');
  for (std::size_t i = 0; i < of.fraction.size(); ++i) power *= 10;
  if (step == 0 || power % step != 0 || power / step > listed_max) return {};
  std::vector<part> ways{literal(""), sequence(literal("."), repeat(digit('0', '0'), 1, digits_max))};
  for (std::uint64_t at = step; at < power; at += step) {
    std::string text = std::to_string(at);
    text.insert(0, of.fraction.size() - text.size(), '0');
    text.erase(text.find_last_not_of('0') + 1);
    ways.push_back(sequence(literal("." + text), repeat(digit('0', '0'), 0, digits_max)));
  }
  return ways;
}

result<part> refusal(const std::string& what) { return failure{errc::invalid_argument, what}; }

result<part> multiples(const number_bounds& bounds, number_kind kind) {
  if (bounds.multiples.size() > 1) return refusal("several different 'multipleOf' are not supported");
  const decimal& of = bounds.multiples.front();
  const bool is_bounded = bounds.low || bounds.high;
  if (of.is_zero()) return refusal("'multipleOf' must be more than 0");
  if (!of.is_whole() && kind != number_kind::whole) {
    auto fractions = fractions_of_multiples(of);
    if (fractions.empty() || is_bounded || kind != number_kind::any)
      return refusal(
          "'multipleOf' of a fraction is supported where it divides 1 into at most 1000 parts and there "
          "are no bounds beside it");
    return sequence(repeat(literal("-"), 0, 1),
                    choice(literal("0"), sequence(digit('1', '9'), repeat(digit(), 0, digits_max - 1))),
                    choice(std::move(fractions)));
  }
  if (kind == number_kind::fractional) return choice();
  // All multiples are whole numbers.
  const auto step = to_integer(of);
  if (!step) return refusal("'multipleOf' must be a whole number of at most 15 digits for whole numbers");
  if (const auto listed = bounds.wholes(listed_max)) {
    std::vector<part> ways;
    for (const auto n : *listed) ways.push_back(literal(std::to_string(n)));
    return choice(std::move(ways));
  }
  const bool is_signed = !bounds.low;
  // What ends with zeros is a multiple of the rest followed by as many zeros.
  std::int64_t odd = *step;
  std::string zeros;
  for (; odd % 10 == 0; odd /= 10) zeros += '0';
  if (bounds.high || (bounds.low && (!bounds.low->is_zero() || bounds.is_low_open)) ||
      static_cast<std::uint64_t>(odd) > remainders_max)
    return refusal("'multipleOf' beside bounds is supported for at most 1000 numbers, and without bounds up to 512");
  std::vector<part> ways{literal("0")};
  part positive = sequence(
      expression(std::make_shared<const regex_dfa>(regex_dfa::multiples_of(static_cast<std::uint32_t>(odd))), false),
      literal(zeros));
  ways.push_back(is_signed ? sequence(repeat(literal("-"), 0, 1), std::move(positive)) : std::move(positive));
  return choice(std::move(ways));
}

/// A bound with no more digits behind the point than numbers need have; away from the numbers that it excludes.
void shorten(std::optional<decimal>& bound, bool& is_open, bool is_low) {
  if (!bound || bound->fraction.size() <= digits_max) return;
  decimal& d = *bound;
  d.fraction.resize(digits_max);
  if (d.is_negative != is_low) {
    std::string digits = add_one(d.whole + d.fraction);
    d.fraction = digits.substr(digits.size() - digits_max);
    d.whole = digits.substr(0, digits.size() - digits_max);
  }
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.is_zero()) d.is_negative = false;
  is_open = false;
}

}  // namespace

decimal decimal::read(const nlohmann::ordered_json& number) {
  const std::string text = number.dump();
  decimal d;
  std::size_t at = 0;
  if (text[at] == '-') {
    d.is_negative = true;
    ++at;
  }
  long exponent = 0;
  bool in_fraction = false;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.')
      in_fraction = true;
    else
      (in_fraction ? d.fraction : d.whole) += text[at];
  }
  if (at < text.size()) exponent = std::strtol(text.c_str() + at + 1, nullptr, 10);
  for (; exponent > 0; --exponent) {
    d.whole += d.fraction.empty() ? '0' : d.fraction.front();
    if (!d.fraction.empty()) d.fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    d.fraction.insert(d.fraction.begin(), d.whole.empty() ? '0' : d.whole.back());
    if (!d.whole.empty()) d.whole.pop_back();
  }
  d.whole.erase(0, std::min(d.whole.find_first_not_of('0'), d.whole.size()));
  d.fraction.erase(d.fraction.find_last_not_of('0') + 1);
  if (d.is_zero()) d.is_negative = false;
  return d;
}

std::strong_ordering decimal::operator<=>(const decimal& other) const {
  if (is_negative != other.is_negative) return is_negative ? std::strong_ordering::less : std::strong_ordering::greater;
  auto order = compare(whole, other.whole);
  if (order == 0) order = fraction.compare(other.fraction) <=> 0;
  return is_negative ? 0 <=> order : order;
}

void number_bounds::add_low(const decimal& bound, bool is_open) {
  if (low && (bound < *low || (bound == *low && (is_low_open || !is_open)))) return;
  low = bound;
  is_low_open = is_open;
}
void number_bounds::add_high(const decimal& bound, bool is_open) {
  if (high && (bound > *high || (bound == *high && (is_high_open || !is_open)))) return;
  high = bound;
  is_high_open = is_open;
}
std::optional<std::vector<std::int64_t>> number_bounds::wholes(std::size_t count_max) const {
  if (!low || !high || multiples.size() > 1) return std::nullopt;
  const auto first = to_integer({low->is_negative, low->whole, ""});
  const auto last = to_integer({high->is_negative, high->whole, ""});
  const auto step = multiples.empty() ? 1 : to_integer(multiples.front());
  if (!first || !last || !step || *step == 0 || (*last - *first) / *step >= static_cast<std::int64_t>(count_max))
    return std::nullopt;
  std::vector<std::int64_t> out;
  for (std::int64_t n = *first / *step - 1; n <= *last / *step + 1; ++n) {
    number_bounds only = *this;
    const decimal d = decimal::read(n * *step);
    only.add_low(d, false);
    only.add_high(d, false);
    if (!only.are_empty()) out.push_back(n * *step);
  }
  return out;
}
bool number_bounds::are_empty() const {
  return low && high && (*low > *high || (*low == *high && (is_low_open || is_high_open)));
}

result<part> numbers_within(number_bounds bounds, number_kind kind) {
  shorten(bounds.low, bounds.is_low_open, true);
  shorten(bounds.high, bounds.is_high_open, false);
  if (bounds.are_empty()) return choice();
  if (!bounds.multiples.empty()) return multiples(bounds, kind);
  if (!bounds.low && !bounds.high) return without_bounds(kind);
  if (kind == number_kind::fractional) return refusal("bounds of numbers that must not be integers are not supported");
  const bool whole_only = kind == number_kind::whole;
  const decimal zero{};
  std::vector<part> ways;
  // Zero and what is above it.
  if (!bounds.high || *bounds.high >= zero) {
    const bool has_low = bounds.low && *bounds.low >= zero;
    ways.push_back(magnitudes(has_low ? *bounds.low : zero, has_low && bounds.is_low_open,
                              bounds.high ? &*bounds.high : nullptr, bounds.is_high_open, whole_only));
  }
  if (!bounds.low || *bounds.low < zero) {
    const bool has_high = bounds.high && *bounds.high < zero;
    decimal from = has_high ? *bounds.high : zero;
    from.is_negative = false;
    decimal to = bounds.low ? *bounds.low : zero;
    to.is_negative = false;
    ways.push_back(sequence(literal("-"), magnitudes(from, !has_high || bounds.is_high_open, bounds.low ? &to : nullptr,
                                                     bounds.is_low_open, whole_only)));
  }
  return choice(std::move(ways));
}

}  // namespace redline::grammar
