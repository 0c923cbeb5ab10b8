#include "runtime/grammar/schema/schema_numbers.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/grammar/syntax/part_builders.hpp"

namespace redline::grammar {
namespace {

constexpr std::uint32_t whole_digits_max = 20;  // those of the numbers of 64 bits
constexpr std::uint32_t fraction_digits_max = 20;
// Beside a bound that is excluded, and where no whole number may stand: more digits are lost when a number is read as a
// double, which may then be that bound or a whole number.
constexpr std::uint32_t exact_digits_max = 15;
constexpr std::size_t integer_digits_max = 18;  // of numbers to calculate with
constexpr std::size_t listed_max = 1000;        // numbers of a range that are written one by one
constexpr std::uint64_t remainders_max = 512;   // a rule that counts remainders has this many repetitions of ten ways

part digit(char from = '0', char to = '9') {
  return characters({{static_cast<char32_t>(from), static_cast<char32_t>(to)}});
}
part any_digits(std::uint32_t least, bool is_open) {
  return repeat(digit(), least, is_open ? exact_digits_max : fraction_digits_max);
}
part zeros(std::uint32_t least) { return repeat(digit('0', '0'), least, fraction_digits_max); }

/// Fractions with at least one digit that is not zero.
part nonzero_digits() {
  return sequence(repeat(digit('0', '0'), 0, exact_digits_max - 1), digit('1', '9'), any_digits(0, true));
}

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

/// Fractions (with their point) of at least `low`: its digits. is_exact: with so few that a double tells them apart.
part fractions_from(const std::string& low, bool is_open, bool is_exact) {
  std::vector<part> ways;
  if (low.empty()) {
    ways.push_back(sequence(literal("."), is_open ? nonzero_digits() : any_digits(1, is_exact)));
    if (!is_open) ways.push_back(literal(""));
    return choice(std::move(ways));
  }
  for (std::size_t i = 0; i < low.size(); ++i) {
    if (low[i] < '9')
      ways.push_back(sequence(literal("." + low.substr(0, i)), digit(static_cast<char>(low[i] + 1), '9'),
                              any_digits(0, is_exact)));
  }
  ways.push_back(sequence(literal("." + low), is_open ? nonzero_digits() : any_digits(0, is_exact)));
  return choice(std::move(ways));
}

/// Fractions of at most `high`.
part fractions_to(const std::string& high, bool is_open) {
  std::vector<part> ways;
  if (!high.empty() || !is_open) {
    ways.push_back(literal(""));
    ways.push_back(sequence(literal("."), zeros(1)));
  }
  for (std::size_t i = 0; i < high.size(); ++i) {
    if (i > 0) ways.push_back(literal("." + high.substr(0, i)));
    if (high[i] > '0')
      ways.push_back(sequence(literal("." + high.substr(0, i)), digit('0', static_cast<char>(high[i] - 1)),
                              any_digits(0, is_open)));
  }
  if (!is_open && !high.empty()) ways.push_back(sequence(literal("." + high), zeros(0)));
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
    ways.push_back(sequence(literal("." + low), zeros(low.empty() ? 1 : 0)));
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
  ways.push_back(sequence(literal(begin), digit(from, from),
                          without_point(fractions_from(rest(low), is_low_open, is_low_open || is_high_open))));
  if (from + 1 < to)
    ways.push_back(sequence(literal(begin), digit(static_cast<char>(from + 1), static_cast<char>(to - 1)),
                            any_digits(0, is_low_open || is_high_open)));
  ways.push_back(sequence(literal(begin), digit(to, to), without_point(fractions_to(rest(high), is_high_open))));
  if (low.find_first_not_of('0') == std::string::npos && !is_low_open) ways.push_back(literal(""));
  return choice(std::move(ways));
}

/// The listed fractions (their digits, without zeros at the end) with which a number that begins with `whole` is within
/// the bounds.
part fractions_of(const std::vector<std::string>& listed, const std::string& whole, const number_bounds& bounds) {
  std::vector<part> ways;
  for (const auto& digits : listed) {
    auto at = bounds;
    at.add_low({false, whole, digits}, false);
    at.add_high({false, whole, digits}, false);
    if (at.are_empty()) continue;
    if (digits.empty()) ways.push_back(literal(""));
    ways.push_back(sequence(literal("." + digits), zeros(digits.empty() ? 1 : 0)));
  }
  return choice(std::move(ways));
}

/// Numbers without signs from the lower bound to the upper one, which may be missing. listed: their fractions; if there
/// are none, all.
part magnitudes(const number_bounds& bounds, bool whole_only, const std::vector<std::string>& listed) {
  const std::string most(whole_digits_max, '9');
  const decimal& low = *bounds.low;
  const decimal* const high = bounds.high ? &*bounds.high : nullptr;
  std::vector<part> ways;
  if (whole_only) {
    const bool is_above = !low.fraction.empty() || bounds.is_low_open;
    std::string first = is_above ? add_one(low.whole.empty() ? "0" : low.whole) : low.whole;
    std::string last = high == nullptr ? most : high->whole;
    if (high != nullptr && high->fraction.empty() && bounds.is_high_open) {
      if (last.empty()) return choice();
      last = subtract_one(last);
    }
    if (compare(last, most) > 0) last = most;
    return compare(first, last) > 0 ? choice() : wholes(first, last);
  }
  const auto text = [](const std::string& whole) { return literal(whole.empty() ? "0" : whole); };
  const bool is_one_whole = high != nullptr && low.whole == high->whole;
  const auto at_low = [&] {
    if (!listed.empty()) return fractions_of(listed, low.whole, bounds);
    return is_one_whole ? fractions_between(low.fraction, bounds.is_low_open, high->fraction, bounds.is_high_open)
                        : fractions_from(low.fraction, bounds.is_low_open, bounds.is_low_open || bounds.is_high_open);
  };
  ways.push_back(sequence(text(low.whole), at_low()));
  if (is_one_whole) return choice(std::move(ways));
  const std::string first = add_one(low.whole.empty() ? "0" : low.whole);
  std::string last = high == nullptr ? most : high->whole.empty() ? "" : subtract_one(high->whole);
  if (compare(last, most) > 0) last = most;
  if (!last.empty() && compare(first, last) <= 0)
    ways.push_back(sequence(wholes(first, last),
                            listed.empty() ? optional_part(sequence(literal("."), any_digits(1, bounds.is_high_open)))
                                           : fractions_of(listed, first, {})));
  if (high != nullptr && high->whole.size() <= whole_digits_max)
    ways.push_back(sequence(text(high->whole), listed.empty() ? fractions_to(high->fraction, bounds.is_high_open)
                                                              : fractions_of(listed, high->whole, bounds)));
  return choice(std::move(ways));
}

part any_whole() { return choice(literal("0"), sequence(digit('1', '9'), repeat(digit(), 0, whole_digits_max - 1))); }

part without_bounds(number_kind kind) {
  const part sign = repeat(literal("-"), 0, 1);
  switch (kind) {
    case number_kind::whole:
      return choice(literal("0"), sequence(sign, digit('1', '9'), repeat(digit(), 0, whole_digits_max - 1)));
    case number_kind::fractional:
      return sequence(sign, any_whole(), literal("."), nonzero_digits());
    case number_kind::any:
      break;
  }
  return sequence(sign, any_whole(), repeat(sequence(literal("."), any_digits(1, false)), 0, 1),
                  repeat(sequence(characters({{'E', 'E'}, {'e', 'e'}}),
                                  repeat(characters({{'+', '+'}, {'-', '-'}}), 0, 1), repeat(digit(), 1, 2)),
                         0, 1));
}

std::optional<std::int64_t> to_integer(const decimal& d) {
  if (!d.is_whole() || d.whole.size() > integer_digits_max) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : d.whole) value = value * 10 + (c - '0');
  return d.is_negative ? -value : value;
}

/// A number as a fraction in lowest terms; nothing if its parts have too many digits.
struct ratio {
  std::int64_t part = 0, whole = 1;
};
std::optional<ratio> to_ratio(const decimal& d) {
  const auto digits = to_integer({false, d.whole + d.fraction, ""});
  if (!digits || d.fraction.size() > integer_digits_max) return std::nullopt;
  std::int64_t power = 1;
  for (std::size_t i = 0; i < d.fraction.size(); ++i) power *= 10;
  const auto common = std::gcd(*digits, power);
  return ratio{*digits / common, power / common};
}

/// The least number that is a multiple of both, which are more than 0; nothing if it has too many digits.
std::optional<decimal> common_multiple(const decimal& a, const decimal& b) {
  const auto places = std::max(a.fraction.size(), b.fraction.size());
  const auto scaled = [&](const decimal& d) {
    return to_integer({false, d.whole + d.fraction + std::string(places - d.fraction.size(), '0'), ""});
  };
  const auto first = scaled(a), second = scaled(b);
  if (!first || !second) return std::nullopt;
  std::int64_t both = 0;
  if (__builtin_mul_overflow(*first / std::gcd(*first, *second), *second, &both)) return std::nullopt;
  std::string digits = std::to_string(both);
  digits.insert(0, places - std::min(places, digits.size()), '0');
  return decimal::of_digits(digits.substr(0, digits.size() - places), digits.substr(digits.size() - places));
}

/// The fractions with which a number is a multiple of `of`, which must divide 1; empty if it does not.
std::vector<std::string> fractions_of_multiples(const decimal& of) {
  const auto step = to_ratio(of);
  if (!step || step->part != 1 || step->whole > static_cast<std::int64_t>(listed_max)) return {};
  std::vector<std::string> all;
  std::int64_t power = 1;
  for (std::size_t i = 0; i < of.fraction.size(); ++i) power *= 10;
  for (std::int64_t at = 0; at < power; at += power / step->whole) {
    std::string text = std::to_string(at);
    text.insert(0, of.fraction.size() - std::min(of.fraction.size(), text.size()), '0');
    text.erase(text.find_last_not_of('0') + 1);
    all.push_back(std::move(text));
  }
  return all;
}

result<part> refusal(const std::string& what) { return failure{errc::invalid_argument, what}; }

/// Whole numbers that are multiples of `of`.
result<part> whole_multiples(number_bounds bounds, const decimal& of) {
  const auto step = to_ratio(of);
  if (!step) return refusal("'multipleOf' is supported with at most 18 digits");
  bounds.multiples = {decimal::read(step->part)};  // a whole number of fractions in lowest terms
  if (const auto listed = bounds.wholes(listed_max)) {
    std::vector<part> ways;
    for (const auto n : *listed) ways.push_back(literal(std::to_string(n)));
    return choice(std::move(ways));
  }
  const bool is_signed = !bounds.low;
  // What ends with zeros is a multiple of the rest followed by as many zeros.
  std::int64_t odd = step->part;
  std::string ending;
  for (; odd % 10 == 0; odd /= 10) ending += '0';
  if (bounds.high || (bounds.low && (!bounds.low->is_zero() || bounds.is_low_open)) ||
      static_cast<std::uint64_t>(odd) > remainders_max)
    return refusal("'multipleOf' beside bounds is supported for at most 1000 numbers, and without bounds up to 512");
  std::vector<part> ways{literal("0")};
  part positive = sequence(
      expression(std::make_shared<const regex_dfa>(regex_dfa::multiples_of(static_cast<std::uint32_t>(odd))), false),
      literal(ending));
  ways.push_back(is_signed ? sequence(repeat(literal("-"), 0, 1), std::move(positive)) : std::move(positive));
  return choice(std::move(ways));
}

/// A bound with no more digits behind the point than numbers need have; away from the numbers that it excludes.
void shorten(std::optional<decimal>& bound, bool& is_open, bool is_low) {
  if (!bound || bound->fraction.size() <= exact_digits_max) return;
  decimal& d = *bound;
  d.fraction.resize(exact_digits_max);
  if (d.is_negative != is_low) {
    std::string digits = add_one(d.whole + d.fraction);
    d.fraction = digits.substr(digits.size() - exact_digits_max);
    d.whole = digits.substr(0, digits.size() - exact_digits_max);
  }
  const bool was_negative = d.is_negative;
  d = decimal::of_digits(d.whole, d.fraction);
  d.is_negative = was_negative && !d.is_zero();
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
  auto out = of_digits(d.whole, d.fraction);
  out.is_negative = d.is_negative && !out.is_zero();
  return out;
}

decimal decimal::of_digits(std::string whole, std::string fraction) {
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return {false, std::move(whole), std::move(fraction)};
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
  std::vector<std::string> listed;
  if (!bounds.multiples.empty()) {
    decimal of = bounds.multiples.front();
    for (const auto& one : bounds.multiples) {
      if (one.is_negative || one.is_zero()) return refusal("'multipleOf' must be more than 0");
      const auto both = common_multiple(of, one);
      if (!both) return refusal("'multipleOf' is supported with at most 18 digits");
      of = *both;
    }
    if (of.is_whole() && kind == number_kind::fractional) return choice();
    if (of.is_whole() || kind == number_kind::whole) {
      const auto ones = to_ratio(of);
      if (!ones || ones->part != 1) return whole_multiples(std::move(bounds), of);
      kind = number_kind::whole;  // every whole number is a multiple
    } else {
      listed = fractions_of_multiples(of);
      if (listed.empty())
        return refusal("'multipleOf' of a fraction is supported where it divides 1 into at most 1000 parts");
      if (kind == number_kind::fractional) listed.erase(listed.begin());
    }
  }
  if (listed.empty() && !bounds.low && !bounds.high) return without_bounds(kind);
  if (listed.empty() && kind == number_kind::fractional)
    return refusal("bounds of numbers that must not be integers are not supported");
  const bool whole_only = kind == number_kind::whole;
  const decimal zero{};
  std::vector<part> ways;
  // Zero and what is above it.
  if (!bounds.high || *bounds.high >= zero) {
    auto above = bounds;
    above.add_low(zero, false);
    ways.push_back(magnitudes(above, whole_only, listed));
  }
  if (!bounds.low || *bounds.low < zero) {
    const bool has_high = bounds.high && *bounds.high < zero;
    number_bounds below{.low = has_high ? *bounds.high : zero,
                        .high = bounds.low,
                        .is_low_open = !has_high || bounds.is_high_open,
                        .is_high_open = bounds.is_low_open};
    below.low->is_negative = false;
    if (below.high) below.high->is_negative = false;
    ways.push_back(sequence(literal("-"), magnitudes(below, whole_only, listed)));
  }
  return choice(std::move(ways));
}

}  // namespace redline::grammar
