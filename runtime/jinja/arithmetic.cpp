#include "runtime/jinja/arithmetic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

using operation = expression::kind;

std::string_view symbol_of(operation o) {
  switch (o) {
    case operation::add:
      return "+";
    case operation::subtract:
      return "-";
    case operation::multiply:
      return "*";
    case operation::divide:
      return "/";
    case operation::floor_divide:
      return "//";
    case operation::modulo:
      return "%";
    default:
      return "**";
  }
}

[[noreturn]] void fail_overflow() { throw error{"expected an integer of 64 bits, found a larger result"}; }

std::int64_t checked_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow();
  }
  return result;
}

/// Rounds toward minus infinity, as Python's // does.
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (a == std::numeric_limits<std::int64_t>::min() && b == -1) fail_overflow();
  const std::int64_t quotient = a / b;
  return (a % b != 0) && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

/// Has the sign of the divisor, as Python's % does.
std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

double floor_remainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0) {
    if ((b < 0) != (rest < 0)) rest += b;
  } else {
    rest = std::copysign(0.0, b);
  }
  return rest;
}

double floor_quotient(double a, double b) {
  const double rest = floor_remainder(a, b);
  const double quotient = (a - rest) / b;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1 : floored;
}

value integer_arithmetic(operation o, std::int64_t a, std::int64_t b) {
  std::int64_t r = 0;
  switch (o) {
    case operation::add:
      if (__builtin_add_overflow(a, b, &r)) fail_overflow();
      return value::integer(r);
    case operation::subtract:
      if (__builtin_sub_overflow(a, b, &r)) fail_overflow();
      return value::integer(r);
    case operation::multiply:
      if (__builtin_mul_overflow(a, b, &r)) fail_overflow();
      return value::integer(r);
    case operation::divide:
      return value::real(static_cast<double>(a) / static_cast<double>(b));
    case operation::floor_divide:
      return value::integer(floor_quotient(a, b));
    case operation::modulo:
      return value::integer(floor_remainder(a, b));
    default:
      if (b >= 0) return value::integer(checked_power(a, b));
      if (a == 0) throw error{"expected a base other than 0 for a negative power"};
      return value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
}

value real_arithmetic(operation o, double a, double b) {
  switch (o) {
    case operation::add:
      return value::real(a + b);
    case operation::subtract:
      return value::real(a - b);
    case operation::multiply:
      return value::real(a * b);
    case operation::divide:
      return value::real(a / b);
    case operation::floor_divide:
      return value::real(floor_quotient(a, b));
    case operation::modulo:
      return value::real(floor_remainder(a, b));
    default: {
      const double r = std::pow(a, b);
      if (std::isnan(r) && !std::isnan(a) && !std::isnan(b)) throw error{"expected a real result of `**`"};
      if (std::isinf(r) && std::isfinite(a) && std::isfinite(b)) throw error{"the result of `**` is too large"};
      return value::real(r);
    }
  }
}

value joined_lists(render_budget& budget, const list_object& a, const list_object& b) {
  std::vector<value> items = a.items;
  budget.step(a.items.size() + b.items.size());
  items.insert(items.end(), b.items.begin(), b.items.end());
  return a.is_tuple ? value::tuple(budget, std::move(items)) : value::list(budget, std::move(items));
}

std::int64_t slice_bound(const value& bound, std::int64_t fallback, std::int64_t length, bool backwards) {
  if (bound.is_none()) return fallback;
  if (!bound.defined().is_integral()) {
    throw error{"expected an int or nothing as the bound of a slice, found " + std::string(bound.type_name())};
  }
  std::int64_t at = bound.as_integer();
  if (at < 0) at = at < -length ? -1 : at + length;  // below the start: -1 for a negative step, 0 for a positive one
  return std::clamp<std::int64_t>(at, backwards ? -1 : 0, backwards ? length - 1 : length);
}

}  // namespace

value calculate(render_budget& budget, operation o, const value& a, const value& b) {
  a.defined();
  b.defined();
  if (a.is_number() && b.is_number()) {
    const bool divides = o == operation::divide || o == operation::floor_divide || o == operation::modulo;
    if (divides && b.as_real() == 0) throw error{"expected a divisor other than 0"};
    if (a.is_integral() && b.is_integral()) return integer_arithmetic(o, a.as_integer(), b.as_integer());
    return real_arithmetic(o, a.as_real(), b.as_real());
  }
  if (o == operation::add && a.is_string() && b.is_string()) {
    text_builder out(budget);
    if (a.is_safe() || b.is_safe()) {
      out.append(made_safe(budget, a).text());
      out.append(made_safe(budget, b).text());
      return value::safe_string(budget, out.take());
    }
    out.append(a.text());
    out.append(b.text());
    return value::string(budget, out.take());
  }
  if (o == operation::add && a.is_list() && b.is_list() && a.as_list().is_tuple == b.as_list().is_tuple) {
    return joined_lists(budget, a.as_list(), b.as_list());
  }
  if (o == operation::multiply && b.is_integral() && (a.is_string() || a.is_list())) {
    return repeat(budget, a, b.as_integer());
  }
  if (o == operation::multiply && a.is_integral() && (b.is_string() || b.is_list())) {
    return repeat(budget, b, a.as_integer());
  }
  throw error{"`" + std::string(symbol_of(o)) + "` does not apply to " + std::string(a.type_name()) + " and " +
              std::string(b.type_name())};
}

value apply_sign(bool negative, const value& a) {
  if (!a.defined().is_number()) {
    throw error{"expected a number after a sign, found " + std::string(a.type_name())};
  }
  if (a.type() == value::kind::real) return value::real(negative ? -a.as_real() : a.as_real());
  std::int64_t r = a.as_integer();
  if (negative && __builtin_sub_overflow(std::int64_t{0}, r, &r)) fail_overflow();
  return value::integer(r);
}

value take_slice(render_budget& budget, const value& v, const value& start, const value& stop, const value& step) {
  if (!v.defined().is_string() && !v.is_list()) {
    throw error{"expected a str or list to slice, found " + std::string(v.type_name())};
  }
  if (!step.is_none() && !step.defined().is_integral()) {
    throw error{"expected an int as the step of a slice, found " + std::string(step.type_name())};
  }
  const std::int64_t stride = step.is_none() ? 1 : step.as_integer();
  if (stride == 0) throw error{"expected a step other than 0 in a slice"};
  const std::size_t offsets_bytes = v.is_string() ? v.text().size() * sizeof(std::size_t) : 0;
  const memory_charge for_offsets(budget, offsets_bytes);
  budget.touch(offsets_bytes);
  const std::vector<std::size_t> offsets =
      v.is_string() ? utf8::code_point_offsets(v.text()) : std::vector<std::size_t>();
  const auto length = static_cast<std::int64_t>(v.is_string() ? offsets.size() - 1 : v.as_list().items.size());
  const bool backwards = stride < 0;
  const std::int64_t from = slice_bound(start, backwards ? length - 1 : 0, length, backwards);
  const std::int64_t to = slice_bound(stop, backwards ? -1 : length, length, backwards);

  // Uses distances rather than positions, so that a huge stride cannot overflow.
  const std::uint64_t span = backwards ? (from > to ? static_cast<std::uint64_t>(from - to) : 0)
                                       : (to > from ? static_cast<std::uint64_t>(to - from) : 0);
  const std::uint64_t pace = backwards ? 0 - static_cast<std::uint64_t>(stride) : static_cast<std::uint64_t>(stride);
  const std::uint64_t count = span == 0 ? 0 : (span - 1) / pace + 1;
  const auto index = [&](std::uint64_t i) {
    return static_cast<std::size_t>(backwards ? from - static_cast<std::int64_t>(i * pace)
                                              : from + static_cast<std::int64_t>(i * pace));
  };
  budget.step(count);
  if (v.is_string()) {
    std::string text;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t at = index(i);
      text.append(v.text(), offsets[at], offsets[at + 1] - offsets[at]);
    }
    return v.is_safe() ? value::safe_string(budget, std::move(text)) : value::string(budget, std::move(text));
  }
  const list_object& list = v.as_list();
  std::vector<value> items;
  for (std::uint64_t i = 0; i < count; ++i) items.push_back(list.items[index(i)]);
  return list.is_tuple ? value::tuple(budget, std::move(items)) : value::list(budget, std::move(items));
}

}  // namespace redline::jinja
