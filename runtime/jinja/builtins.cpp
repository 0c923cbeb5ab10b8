#include "runtime/jinja/builtins.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

/// A conversion of a format string: %[(key)][flags][width][.precision]type.
struct conversion {
  std::string key;
  bool has_key = false;
  std::string flags;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

constexpr std::int64_t width_max = 10'000;
constexpr std::int64_t digits_max = 300;

std::int64_t format_number(std::string_view format, std::size_t& at) {
  std::int64_t number = 0;
  while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
    number = number * 10 + (format[at++] - '0');
    if (number > width_max) throw error{"wanted a width of at most 10000 in a format string"};
  }
  return number;
}

conversion parse_conversion(std::string_view format, std::size_t& at) {
  conversion c;
  if (at < format.size() && format[at] == '(') {
    const std::size_t close = format.find(')', at);
    if (close == format.npos) throw error{"wanted `)` after a key in a format string"};
    c.key = std::string(format.substr(at + 1, close - at - 1));
    c.has_key = true;
    at = close + 1;
  }
  while (at < format.size() && std::string_view("#0- +").find(format[at]) != std::string_view::npos) {
    if (c.flags.find(format[at]) == std::string::npos) c.flags += format[at];
    ++at;
  }
  c.width = format_number(format, at);
  if (at < format.size() && format[at] == '.') {
    ++at;
    c.precision = format_number(format, at);
  }
  if (at >= format.size()) throw error{"wanted a conversion after `%` in a format string, found its end"};
  c.type = format[at++];
  return c;
}

std::string padded(const conversion& c, std::string text) {
  const auto length = static_cast<std::int64_t>(utf8::count_code_points(text));
  if (length >= c.width) return text;
  const std::string blanks(static_cast<std::size_t>(c.width - length), ' ');
  return c.flags.find('-') != std::string::npos ? text + blanks : blanks + text;
}

std::string converted(render_budget& budget, const conversion& c, const value& v) {
  static constexpr std::string_view integers = "diuxXo", reals = "eEfFgG";
  if (c.type == 's' || c.type == 'r') {
    text_builder out(budget);
    if (c.type == 's') {
      out.append_value(v);
    } else {
      append_repr(out, budget, v);
    }
    std::string text = out.take();
    if (c.precision >= 0) {
      const auto offsets = utf8::code_point_offsets(text);
      text.resize(offsets[std::min(static_cast<std::size_t>(c.precision), offsets.size() - 1)]);
    }
    return padded(c, std::move(text));
  }
  if (!v.defined().is_number()) {
    throw error{std::string("wanted a number for %") + c.type + ", found " + std::string(v.type_name())};
  }
  if (c.precision > digits_max) throw error{"wanted at most 300 digits in a format string"};
  char buffer[width_max + digits_max + 400];
  std::string spec = "%" + c.flags + std::to_string(c.width);
  if (c.width == 0) spec = "%" + c.flags;
  if (c.precision >= 0) spec += "." + std::to_string(c.precision);
  if (integers.find(c.type) != integers.npos) {
    const double real = v.as_real();
    if (!v.is_integral() && !(std::fabs(real) < 9e18)) throw error{"wanted an integer of 64 bits to format"};
    const std::int64_t number = v.is_integral() ? v.as_integer() : static_cast<std::int64_t>(real);
    if (number < 0 && c.type != 'd' && c.type != 'i' && c.type != 'u') {
      throw error{"wanted a number from 0 for a format in base 8 or 16"};
    }
    spec += std::string("ll") + (c.type == 'u' ? 'd' : c.type);
    std::snprintf(buffer, sizeof buffer, spec.c_str(), static_cast<long long>(number));
  } else if (reals.find(c.type) != reals.npos) {
    spec += c.type;
    std::snprintf(buffer, sizeof buffer, spec.c_str(), v.as_real());
  } else {
    throw error{std::string("conversion %") + c.type + " is not supported in a format string"};
  }
  return buffer;
}

}  // namespace

void bind_arguments(const native_call& call, const char* const* names, std::size_t count, const value** out) {
  const std::string title = "`" + std::string(call.name.substr(0, 40)) + "`";
  if (call.arguments.positional.size() > count) {
    throw error{title + " takes at most " + std::to_string(count) + " arguments, found " +
                std::to_string(call.arguments.positional.size())};
  }
  for (std::size_t i = 0; i < call.arguments.positional.size(); ++i) out[i] = &call.arguments.positional[i];
  for (const auto& [name, v] : call.arguments.keyword) {
    const auto found = std::find_if(names, names + count, [&](const char* n) { return name == n; });
    if (found == names + count) throw error{title + " has no parameter `" + name.substr(0, 40) + "`"};
    const value*& place = out[found - names];
    if (place != nullptr) throw error{title + " got parameter `" + name + "` twice"};
    place = &v;
  }
}

void expect_no_arguments(const native_call& call) {
  if (call.arguments.positional.empty() && call.arguments.keyword.empty()) return;
  throw error{"`" + std::string(call.name.substr(0, 40)) + "` takes no arguments"};
}

std::int64_t integer_argument(const native_call& call, const value* v, std::int64_t fallback) {
  if (v == nullptr || v->is_none()) return fallback;
  if (v->defined().is_integral()) return v->as_integer();
  throw error{"wanted an int in a call of `" + std::string(call.name) + "`, found " + std::string(v->type_name())};
}

bool boolean_argument(const value* v, bool fallback) { return v == nullptr ? fallback : v->truth(); }

const std::string& text_argument(const native_call& call, const value* v, std::string_view parameter) {
  if (v != nullptr && v->defined().is_string()) return v->text();
  throw error{"wanted a str as `" + std::string(parameter) + "` of `" + std::string(call.name) + "`, found " +
              std::string(v == nullptr ? "nothing" : v->type_name())};
}

std::string format_text(render_budget& budget, std::string_view format, const value& values) {
  text_builder out(budget);
  const bool is_tuple = values.is_list() && values.as_list().is_tuple;
  std::size_t used = 0;
  const auto next = [&]() -> const value& {
    if (is_tuple && used < values.as_list().items.size()) return values.as_list().items[used++];
    if (!is_tuple && used == 0) return ++used, values;
    throw error{"wanted more values for a format string, found " + std::to_string(used)};
  };
  for (std::size_t at = 0; at < format.size();) {
    const std::size_t percent = std::min(format.find('%', at), format.size());
    out.append(format.substr(at, percent - at));
    if (percent == format.size()) break;
    at = percent + 1;
    const conversion c = parse_conversion(format, at);
    if (c.type == '%') {
      out.append("%");
    } else if (c.has_key) {
      const value* found = values.is_dict() ? values.as_dict().find(c.key) : nullptr;
      if (found == nullptr) throw error{"wanted a dict with the key `" + c.key.substr(0, 40) + "` for a format string"};
      out.append(converted(budget, c, *found));
    } else {
      out.append(converted(budget, c, next()));
    }
  }
  const std::size_t given = is_tuple ? values.as_list().items.size() : values.is_dict() || values.is_list() ? used : 1;
  if (used < given) {
    if (is_tuple || format.find("%(") == format.npos) throw error{"found more values than a format string uses"};
  }
  return out.take();
}

std::string replace_text(render_budget& budget, std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t count) {
  text_builder out(budget);
  budget.touch(text.size());
  std::size_t at = 0;
  if (from.empty()) {  // before every code point, and at the end
    while (count != 0) {
      out.append(to);
      --count;
      if (at >= text.size()) break;
      const std::size_t length = utf8::decode(text, at).size_bytes;
      out.append(text.substr(at, length));
      at += length;
    }
    out.append(text.substr(at));
    return out.take();
  }
  while (count != 0) {
    const std::size_t found = text.find(from, at);
    if (found == text.npos) break;
    out.append(text.substr(at, found - at));
    out.append(to);
    at = found + from.size();
    --count;
  }
  out.append(text.substr(at));
  return out.take();
}

value repeat(render_budget& budget, const value& v, std::int64_t count) {
  if (v.is_string()) {
    const std::string& text = v.text();
    if (count <= 0 || text.empty()) return value::string(budget, "");
    const std::size_t bytes_max = budget.limits().memory_bytes_max;
    const bool fits = static_cast<std::uint64_t>(count) <= bytes_max / text.size();
    const memory_charge for_text(budget, fits ? text.size() * static_cast<std::size_t>(count) : bytes_max + 1);
    budget.touch(text.size() * static_cast<std::size_t>(count));
    std::string out;
    for (std::int64_t i = 0; i < count; ++i) out += text;
    return value::string(budget, std::move(out));
  }
  const list_object& list = v.as_list();
  std::vector<value> items;
  memory_charge for_items(budget, 0);
  if (!list.items.empty()) {
    for (std::int64_t i = 0; i < count; ++i) {
      budget.step(list.items.size());
      for_items.grow(list.items.size() * sizeof(value));
      items.insert(items.end(), list.items.begin(), list.items.end());
    }
  }
  return list.is_tuple ? value::tuple(budget, std::move(items)) : value::list(budget, std::move(items));
}

std::string center_text(render_budget& budget, std::string_view text, std::int64_t width) {
  const auto length = static_cast<std::int64_t>(utf8::count_code_points(text));
  const std::int64_t pad = std::max<std::int64_t>(0, width - length);
  const std::int64_t left = pad / 2 + (pad & width & 1);  // as CPython rounds
  const value blank = value::string(budget, " ");
  text_builder out(budget);
  out.append(repeat(budget, blank, left).text());
  out.append(text);
  out.append(repeat(budget, blank, pad - left).text());
  return out.take();
}

}  // namespace redline::jinja
