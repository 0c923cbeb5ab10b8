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
const std::string& self_text(native_call& call) {
  call.budget.touch(call.self.text().size());
  return call.self.text();
}

// -- str

template<std::string (*convert)(std::string_view)>
value converted(native_call& call) {
  expect_no_arguments(call);
  return text_value(call, convert(self_text(call)));
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    utf8::append(out, to_upper(c.value) != c.value ? to_upper(c.value) : to_lower(c.value));
    at += c.size_bytes;
  }
  return out;
}

template<strip_side side>
value stripped(native_call& call) {
  const auto [chars] = bind_arguments(call, {"chars"});
  const std::string& text = self_text(call);
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

/// Likewise from the right; the parts come in reverse order.
std::vector<std::string_view> rsplit_at_blanks(std::string_view text, std::int64_t splits) {
  std::vector<std::string_view> words = split_at_blanks(text, -1), parts;
  text = strip(text, strip_side::right);
  while (!words.empty() && splits-- != 0) {
    parts.push_back(words.back());
    text = strip(text.substr(0, static_cast<std::size_t>(words.back().data() - text.data())), strip_side::right);
    words.pop_back();
  }
  if (!words.empty()) parts.push_back(text);
  return parts;
}

value list_of(native_call& call, std::span<const std::string_view> parts, bool reverse = false) {
  std::vector<value> items;
  for (const std::string_view part : parts) items.push_back(text_value(call, part));
  if (reverse) std::reverse(items.begin(), items.end());
  return value::list(call.budget, std::move(items));
}

const std::string& separator_argument(native_call& call, const value* sep) {
  const std::string& separator = text_argument(call, sep, "sep");
  if (separator.empty())
    throw error{"wanted a separator that is not empty in a call of `" + std::string(call.name) + "`"};
  return separator;
}

value split(native_call& call) {
  const auto [sep, count] = bind_arguments(call, {"sep", "maxsplit"});
  std::int64_t splits = integer_argument(call, count, -1);
  std::string_view text = self_text(call);
  if (sep == nullptr || sep->is_none()) return list_of(call, split_at_blanks(text, splits));
  const std::string& separator = separator_argument(call, sep);
  std::vector<value> items;  // text_value charges each part as it comes
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
  std::string_view text = self_text(call);
  if (sep == nullptr || sep->is_none()) return list_of(call, rsplit_at_blanks(text, splits), true);
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
  return list_of(call, parts, true);
}

value splitlines(native_call& call) {
  const auto [keep] = bind_arguments(call, {"keepends"});
  return list_of(call, split_lines(self_text(call), boolean_argument(keep, false)));
}

value partition_at(native_call& call, bool last) {
  const auto [sep] = bind_arguments(call, {"sep"});
  const std::string& separator = separator_argument(call, sep);
  const std::string_view text = self_text(call);
  const std::size_t at = last ? text.rfind(separator) : text.find(separator);
  std::string_view parts[3] = {last ? "" : text, "", last ? text : ""};
  if (at != text.npos) {
    parts[0] = text.substr(0, at), parts[1] = separator, parts[2] = text.substr(at + separator.size());
  }
  return value::tuple(call.budget,
                      {text_value(call, parts[0]), text_value(call, parts[1]), text_value(call, parts[2])});
}
value partition(native_call& call) { return partition_at(call, false); }
value rpartition(native_call& call) { return partition_at(call, true); }

/// start and end of str methods that take them, as bytes.
std::pair<std::size_t, std::size_t> byte_range(native_call& call, const value* start, const value* end) {
  const std::string& text = self_text(call);
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
  if (affix == nullptr) throw error{"wanted an argument of `" + std::string(call.name) + "`"};
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

/// The code point index of a find, or -1.
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

value checked_index(native_call& call, bool last) {
  const std::int64_t at = found_at(call, last);
  if (at < 0) throw error{"wanted a str that contains the argument of `" + std::string(call.name) + "`"};
  return value::integer(at);
}
value text_index(native_call& call) { return checked_index(call, false); }
value text_rindex(native_call& call) { return checked_index(call, true); }

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
  return value::string(call.budget, replace_text(call.budget, self_text(call), text_argument(call, from, "old"),
                                                 text_argument(call, to, "new"), integer_argument(call, count, -1)));
}

value remove_affix(native_call& call, bool at_end) {
  const auto [affix] = bind_arguments(call, {"prefix"});
  const std::string& wanted = text_argument(call, affix, "prefix");
  std::string_view text = self_text(call);
  if (at_end ? text.ends_with(wanted) : text.starts_with(wanted)) {
    text = at_end ? text.substr(0, text.size() - wanted.size()) : text.substr(wanted.size());
  }
  return text_value(call, text);
}
value removeprefix(native_call& call) { return remove_affix(call, false); }
value removesuffix(native_call& call) { return remove_affix(call, true); }

value join(native_call& call) {
  const auto [parts] = bind_arguments(call, {"iterable"});
  if (parts == nullptr) throw error{"wanted an argument of `join`"};
  text_builder out(call.budget);
  bool first = true;
  for (const value& part : iterate(call.budget, *parts)) {
    if (!first) out.append(self_text(call));
    first = false;
    out.append(text_argument(call, &part, "item"));
  }
  return value::string(call.budget, out.take());
}

enum class justify { left, right };
template<justify side>
value justified(native_call& call) {
  const auto [width, fill] = bind_arguments(call, {"width", "fillchar"});
  if (width == nullptr) throw error{"wanted a width for `" + std::string(call.name) + "`"};
  const value filler = fill != nullptr ? *fill : value::string(call.budget, " ");
  if (utf8::count_code_points(text_argument(call, &filler, "fillchar")) != 1)
    throw error{"wanted one character to fill with"};
  const auto length = static_cast<std::int64_t>(utf8::count_code_points(self_text(call)));
  const std::int64_t pad = std::max<std::int64_t>(0, integer_argument(call, width, 0)) - length;
  const value blanks = repeat(call.budget, filler, pad);
  return text_value(call, side == justify::left ? call.self.text() + blanks.text() : blanks.text() + call.self.text());
}

value center(native_call& call) {
  const auto [width] = bind_arguments(call, {"width"});
  return value::string(call.budget, center_text(call.budget, self_text(call), integer_argument(call, width, 0)));
}

value zfill(native_call& call) {
  const auto [width] = bind_arguments(call, {"width"});
  const std::string& text = self_text(call);
  const std::int64_t pad = std::max<std::int64_t>(0, integer_argument(call, width, 0)) -
                           static_cast<std::int64_t>(utf8::count_code_points(text));
  const std::string zeros = repeat(call.budget, value::string(call.budget, "0"), pad).text();
  const std::size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return text_value(call, text.substr(0, sign) + zeros + text.substr(sign));
}

/// At least one code point, all of which hold.
template<bool (*holds)(char32_t)>
value all_code_points(native_call& call) {
  expect_no_arguments(call);
  const std::string& text = self_text(call);
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    if (!holds(c.value)) return value::boolean(false);
    at += c.size_bytes;
  }
  return value::boolean(!text.empty());
}
bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_ascii(char32_t c) { return c < 0x80; }

template<bool (*holds)(std::string_view)>
value whole_text(native_call& call) {
  expect_no_arguments(call);
  return value::boolean(holds(self_text(call)));
}

/// str.format with plain fields: {}, {0} and {name}.
value format(native_call& call) {
  text_builder out(call.budget);
  const std::string_view text = self_text(call);
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool doubled = at + 1 < text.size() && text[at + 1] == c;
    if ((c == '{' || c == '}') && doubled) ++at;
    if (c == '}' && !doubled) throw error{"found `}` without `{` in a format string"};
    if (c != '{' || doubled) {
      out.append({&c, 1});
      continue;
    }
    const std::size_t close = std::min(text.find('}', at), text.size());
    const std::string_view field = text.substr(at + 1, close - at - 1);
    if (close == text.size() || field.find_first_of("{.[!:") != field.npos) {
      throw error{"wanted a plain field in a format string, such as {} or {name}"};
    }
    const bool is_index = field.empty() || (field.size() < 6 && std::all_of(field.begin(), field.end(), [](char d) {
                                              return is_digit(static_cast<unsigned char>(d));
                                            }));
    const value* v = nullptr;
    if (is_index) {
      const std::size_t index = field.empty() ? next++ : static_cast<std::size_t>(std::stoul(std::string(field)));
      if (index < call.arguments.positional.size()) v = &call.arguments.positional[index];
    } else {
      for (const auto& [name, named] : call.arguments.keyword) {
        if (name == field) v = &named;
      }
    }
    if (v == nullptr) throw error{"wanted a value for a field of a format string"};
    out.append_value(*v);
    at = close;
  }
  return value::string(call.budget, out.take());
}

// -- list, tuple and dict

value list_count(native_call& call) {
  const auto [wanted] = bind_arguments(call, {"value"});
  if (wanted == nullptr) throw error{"wanted an argument of `count`"};
  const auto& items = call.self.as_list().items;
  return value::integer(
      std::count_if(items.begin(), items.end(), [&](const value& item) { return equal(call.budget, item, *wanted); }));
}

value list_index(native_call& call) {
  const auto [wanted] = bind_arguments(call, {"value"});
  if (wanted == nullptr) throw error{"wanted an argument of `index`"};
  const auto& items = call.self.as_list().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(call.budget, items[i], *wanted)) return value::integer(static_cast<std::int64_t>(i));
  }
  throw error{"wanted a list that contains the argument of `index`"};
}

value copy(native_call& call) {
  expect_no_arguments(call);
  return call.self;
}

value dict_get(native_call& call) {
  const auto [key, fallback] = bind_arguments(call, {"key", "default"});
  if (key == nullptr) throw error{"wanted an argument of `get`"};
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
    {"casefold", converted<lower>},
    {"center", center},
    {"count", text_count},
    {"endswith", endswith},
    {"find", find},
    {"format", format},
    {"index", text_index},
    {"isalnum", all_code_points<is_word>},
    {"isalpha", all_code_points<is_cased>},
    {"isascii", all_code_points<is_ascii>},
    {"isdecimal", all_code_points<is_digit>},
    {"isdigit", all_code_points<is_digit>},
    {"islower", whole_text<is_lower>},
    {"isnumeric", all_code_points<is_digit>},
    {"isspace", all_code_points<is_python_space>},
    {"isupper", whole_text<is_upper>},
    {"join", join},
    {"ljust", justified<justify::left>},
    {"lower", converted<lower>},
    {"lstrip", stripped<strip_side::left>},
    {"partition", partition},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"rfind", rfind},
    {"rindex", text_rindex},
    {"rjust", justified<justify::right>},
    {"rpartition", rpartition},
    {"rsplit", rsplit},
    {"rstrip", stripped<strip_side::right>},
    {"split", split},
    {"splitlines", splitlines},
    {"startswith", startswith},
    {"strip", stripped<strip_side::both>},
    {"swapcase", converted<swap_case>},
    {"title", converted<title>},
    {"upper", converted<upper>},
    {"zfill", zfill},
};

constexpr method list_methods[] = {{"copy", copy}, {"count", list_count}, {"index", list_index}};

constexpr method dict_methods[] = {
    {"copy", copy}, {"get", dict_get}, {"items", dict_items}, {"keys", dict_keys}, {"values", dict_values}};

constexpr std::string_view forbidden_dict_attributes[] = {"clear",   "fromkeys",   "pop",
                                                          "popitem", "setdefault", "update"};

}  // namespace

native_function find_method(const value& self, std::string_view name) {
  std::span<const method> methods;
  if (self.is_string()) methods = text_methods;
  if (self.is_list()) methods = list_methods;
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
