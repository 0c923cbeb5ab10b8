#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

value text_value(native_call& call, std::string_view text) { return value::string(call.budget, std::string(text)); }
const std::string& own_text(native_call& call) {
  call.budget.touch(call.self.text().size());
  return call.self.text();
}

// -- str

template<std::string (*convert)(std::string_view)>
value converted(native_call& call) {
  expect_no_arguments(call);
  return text_value(call, convert(own_text(call)));
}

template<strip_side side>
value stripped(native_call& call) {
  const auto [chars] = bind_arguments(call, {"chars"});
  const std::string& text = own_text(call);
  if (chars == nullptr || chars->is_none()) return text_value(call, strip(text, side));
  const std::string_view characters = text_argument(call, chars, "chars");
  call.budget.step(text.size() * (characters.size() + 1) / 16);
  return text_value(call, strip(text, side, &characters));
}

std::vector<std::string_view> split_at_blanks(std::string_view text, std::int64_t splits) {
  std::vector<std::string_view> parts;
  while (true) {
    text = strip(text, strip_side::left);
    if (text.empty()) return parts;
    if (splits == 0) break;
    std::size_t end = 0;
    while (end < text.size()) {
      const utf8::code_point c = utf8::decode(text, end);
      if (is_python_space(c.value)) break;
      end += c.size_bytes;
    }
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
    --splits;
  }
  parts.push_back(text);
  return parts;
}

/// Splits at whitespace from the right.
std::vector<std::string_view> rsplit_at_blanks(std::string_view text, std::int64_t splits) {
  std::vector<std::string_view> words = split_at_blanks(text, -1), parts;
  text = strip(text, strip_side::right);
  while (!words.empty() && splits-- != 0) {
    parts.push_back(words.back());
    text = strip(text.substr(0, static_cast<std::size_t>(words.back().data() - text.data())), strip_side::right);
    words.pop_back();
  }
  if (!words.empty()) parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

value list_of(native_call& call, std::span<const std::string_view> parts) {
  std::vector<value> items;
  for (const std::string_view part : parts) items.push_back(text_value(call, part));
  return value::list(call.budget, std::move(items));
}

const std::string& separator_argument(native_call& call, const value* sep) {
  const std::string& separator = text_argument(call, sep, "sep");
  if (separator.empty())
    throw error{"expected a separator that is not empty in a call of `" + std::string(call.name) + "`"};
  return separator;
}

value split(native_call& call) {
  const auto [sep, count] = bind_arguments(call, {"sep", "maxsplit"});
  std::int64_t splits = integer_argument(call, count, -1);
  std::string_view text = own_text(call);
  if (sep == nullptr || sep->is_none()) return list_of(call, split_at_blanks(text, splits));
  const std::string& separator = separator_argument(call, sep);
  std::vector<value> items;  // text_value charges each part as it is added
  while (splits-- != 0) {
    const std::size_t at = text.find(separator);
    if (at == text.npos) break;
    call.budget.step();
    items.push_back(text_value(call, text.substr(0, at)));
    text.remove_prefix(at + separator.size());
  }
  items.push_back(text_value(call, text));
  return value::list(call.budget, std::move(items));
}

value rsplit(native_call& call) {
  const auto [sep, count] = bind_arguments(call, {"sep", "maxsplit"});
  std::int64_t splits = integer_argument(call, count, -1);
  std::string_view text = own_text(call);
  if (sep == nullptr || sep->is_none()) return list_of(call, rsplit_at_blanks(text, splits));
  const std::string& separator = separator_argument(call, sep);
  std::vector<std::string_view> parts;
  while (splits-- != 0) {
    const std::size_t at = text.rfind(separator);
    if (at == text.npos) break;
    call.budget.step();
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return list_of(call, parts);
}

value splitlines(native_call& call) {
  const auto [keep] = bind_arguments(call, {"keepends"});
  return list_of(call, split_lines(own_text(call), boolean_argument(keep, false)));
}

/// The start and end arguments of str methods, as byte offsets.
std::pair<std::size_t, std::size_t> byte_range(native_call& call, const value* start, const value* end) {
  const std::string& text = own_text(call);
  const bool whole = (start == nullptr || start->is_none()) && (end == nullptr || end->is_none());
  if (whole) return {0, text.size()};
  const memory_charge for_offsets(call.budget, text.size() * sizeof(std::size_t));
  const auto offsets = utf8::code_point_offsets(text);
  const auto length = static_cast<std::int64_t>(offsets.size()) - 1;
  const auto bound = [&](const value* v, std::int64_t fallback) {
    std::int64_t at = integer_argument(call, v, fallback);
    if (at < 0) at = at < -length ? 0 : at + length;
    return at;
  };
  const std::int64_t from = bound(start, 0), to = std::min(bound(end, length), length);
  if (from > to) return {std::string::npos, 0};
  return {offsets[static_cast<std::size_t>(from)], offsets[static_cast<std::size_t>(to)]};
}

value has_affix(native_call& call, bool at_end) {
  const auto [affix, start, end] = bind_arguments(call, {"prefix", "start", "end"});
  if (affix == nullptr) throw error{"expected an argument of `" + std::string(call.name) + "`"};
  const auto [from, to] = byte_range(call, start, end);
  const std::string_view text =
      from == std::string::npos ? std::string_view() : std::string_view(call.self.text()).substr(from, to - from);
  const auto matches = [&](const value& one) {
    const std::string& wanted = text_argument(call, &one, "prefix");
    call.budget.touch(wanted.size());
    if (from == std::string::npos) return false;
    return at_end ? text.ends_with(wanted) : text.starts_with(wanted);
  };
  if (!affix->is_list() || !affix->as_list().is_tuple) return value::boolean(matches(*affix));
  const auto& several = affix->as_list().items;
  return value::boolean(std::any_of(several.begin(), several.end(), matches));
}
value startswith(native_call& call) { return has_affix(call, false); }
value endswith(native_call& call) { return has_affix(call, true); }

/// The code point index of a match, or -1.
std::int64_t found_at(native_call& call, bool last) {
  const auto [wanted, start, end] = bind_arguments(call, {"sub", "start", "end"});
  const std::string& sub = text_argument(call, wanted, "sub");
  const auto [from, to] = byte_range(call, start, end);
  if (from == std::string::npos) return -1;
  const std::string_view range = std::string_view(call.self.text()).substr(from, to - from);
  const std::size_t at = last ? range.rfind(sub) : range.find(sub);
  if (at == range.npos) return -1;
  return static_cast<std::int64_t>(utf8::count_code_points(std::string_view(call.self.text()).substr(0, from + at)));
}
value find(native_call& call) { return value::integer(found_at(call, false)); }
value rfind(native_call& call) { return value::integer(found_at(call, true)); }

value text_count(native_call& call) {
  const auto [wanted, start, end] = bind_arguments(call, {"sub", "start", "end"});
  const std::string& sub = text_argument(call, wanted, "sub");
  const auto [from, to] = byte_range(call, start, end);
  if (from == std::string::npos) return value::integer(0);
  const std::string_view range = std::string_view(call.self.text()).substr(from, to - from);
  if (sub.empty()) return value::integer(static_cast<std::int64_t>(utf8::count_code_points(range)) + 1);
  std::int64_t count = 0;
  for (std::size_t at = range.find(sub); at != range.npos; at = range.find(sub, at + sub.size())) ++count;
  return value::integer(count);
}

value replace(native_call& call) {
  const auto [from, to, count] = bind_arguments(call, {"old", "new", "count"});
  return value::string(call.budget, replace_text(call.budget, own_text(call), text_argument(call, from, "old"),
                                                 text_argument(call, to, "new"), integer_argument(call, count, -1)));
}

value remove_affix(native_call& call, bool at_end) {
  const auto [affix] = bind_arguments(call, {"prefix"});
  const std::string& wanted = text_argument(call, affix, "prefix");
  std::string_view text = own_text(call);
  if (at_end ? text.ends_with(wanted) : text.starts_with(wanted)) {
    text = at_end ? text.substr(0, text.size() - wanted.size()) : text.substr(wanted.size());
  }
  return text_value(call, text);
}
value removeprefix(native_call& call) { return remove_affix(call, false); }
value removesuffix(native_call& call) { return remove_affix(call, true); }

value join(native_call& call) {
  const auto [parts] = bind_arguments(call, {"iterable"});
  if (parts == nullptr) throw error{"expected an argument of `join`"};
  text_builder out(call.budget);
  bool first = true;
  for (const value& part : iterate(call.budget, *parts)) {
    if (!first) out.append(own_text(call));
    first = false;
    out.append(text_argument(call, &part, "item"));
  }
  return value::string(call.budget, out.take());
}

// -- dict

value dict_get(native_call& call) {
  const auto [key, fallback] = bind_arguments(call, {"key", "default"});
  if (key == nullptr) throw error{"expected an argument of `get`"};
  const value* found = call.self.as_dict().find(call.budget, *key);
  return found != nullptr ? *found : fallback != nullptr ? *fallback : value();
}

value dict_items(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> pairs;
  for (const auto& [key, v] : call.self.as_dict().entries) {
    pairs.push_back(value::tuple(call.budget, {key, v}));
  }
  return value::list(call.budget, std::move(pairs));
}

value dict_keys(native_call& call) {
  expect_no_arguments(call);
  return value::list(call.budget, iterate(call.budget, call.self));
}

value dict_values(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> values;
  for (const auto& [key, v] : call.self.as_dict().entries) values.push_back(v);
  return value::list(call.budget, std::move(values));
}

using method = std::pair<std::string_view, native_function>;

constexpr method text_methods[] = {
    {"capitalize", converted<capitalize>},
    {"count", text_count},
    {"endswith", endswith},
    {"find", find},
    {"join", join},
    {"lower", converted<lower>},
    {"lstrip", stripped<strip_side::left>},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rsplit", rsplit},
    {"rstrip", stripped<strip_side::right>},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", stripped<strip_side::both>},
    {"title", converted<title>},
    {"upper", converted<upper>},
};

constexpr method dict_methods[] = {
    {"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}};

constexpr std::string_view forbidden_dict_attributes[] = {"clear",   "copy",       "fromkeys", "pop",
                                                          "popitem", "setdefault", "update"};

}  // namespace

native_function find_method(const value& self, std::string_view name) {
  std::span<const method> methods;
  if (self.is_string()) methods = text_methods;
  if (self.is_dict()) methods = dict_methods;
  const auto found = std::find_if(methods.begin(), methods.end(), [&](const method& m) { return m.first == name; });
  return found == methods.end() ? nullptr : found->second;
}

bool is_forbidden_attribute(const value& self, std::string_view name) {
  if (!self.is_dict()) return false;
  const auto& names = forbidden_dict_attributes;
  return name.starts_with("__") || std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace redline::jinja
