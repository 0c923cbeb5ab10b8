#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/arithmetic.hpp"
#include "runtime/jinja/builtins.hpp"
#include "runtime/jinja/interpreter.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

using kind = value::kind;

value text_value(native_call& call, std::string text) { return value::string(call.budget, std::move(text)); }
std::string self_text(native_call& call) { return to_str(call.budget, call.self); }

// -- attribute paths, as used by map, sort, join and similar filters

/// "a.b.0" or an index.
class attribute_path {
 public:
  attribute_path() = default;
  attribute_path(render_budget& budget, const value& path) {
    if (path.defined().is_integral()) {
      parts_.push_back(path);
    } else if (path.is_string()) {
      split(budget, path.text());
    } else {
      throw error{"expected the name or index of an attribute, found " + std::string(path.type_name())};
    }
  }
  [[nodiscard]] value of(interpreter& engine, value item, const value* fallback) const {
    for (const value& part : parts_) {
      item = engine.item(item, part);
      if (fallback != nullptr && item.is_undefined()) item = *fallback;
    }
    return item;
  }

 private:
  void split(render_budget& budget, std::string_view path) {
    for (std::size_t from = 0; from <= path.size();) {
      const std::size_t dot = std::min(path.find('.', from), path.size());
      const std::string_view part = path.substr(from, dot - from);
      std::int64_t index = 0;
      const bool digits = !part.empty() && part.size() < 18 &&
                          std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (digits) std::from_chars(part.data(), part.data() + part.size(), index);
      parts_.push_back(digits ? value::integer(index) : value::string(budget, std::string(part)));
      from = dot + 1;
    }
  }
  std::vector<value> parts_;
};

value without_case(render_budget& budget, const value& v) {
  return v.is_string() ? value::string(budget, lower(v.text())) : v;
}

/// The key for comparing an item: its attributes (or itself), ignoring case unless case_sensitive is set.
class sort_key {
 public:
  sort_key(native_call& call, const value* attribute, bool case_sensitive, bool several)
      : call_(call), ignore_case_(!case_sensitive) {
    if (attribute == nullptr || attribute->is_none()) return;
    by_attribute_ = true;
    if (!several || !attribute->is_string()) {
      paths_.emplace_back(call.budget, *attribute);
      return;
    }
    const std::string& names = attribute->text();
    for (std::size_t from = 0; from <= names.size();) {
      const std::size_t comma = std::min(names.find(',', from), names.size());
      paths_.emplace_back(call.budget, value::string(call.budget, names.substr(from, comma - from)));
      from = comma + 1;
    }
  }
  [[nodiscard]] value of(const value& item) const {
    if (!by_attribute_) return folded(item);
    if (paths_.size() == 1) return folded(paths_[0].of(call_.engine, item, nullptr));
    std::vector<value> parts;
    for (const attribute_path& path : paths_) parts.push_back(folded(path.of(call_.engine, item, nullptr)));
    return value::tuple(call_.budget, std::move(parts));
  }

 private:
  [[nodiscard]] value folded(const value& v) const { return ignore_case_ ? without_case(call_.budget, v) : v; }
  native_call& call_;
  bool ignore_case_;
  bool by_attribute_ = false;
  std::vector<attribute_path> paths_;
};

/// Sorts stably, even if reversed, as Python does.
std::vector<value> sorted(native_call& call, std::vector<value> items, const sort_key& key, bool reverse) {
  std::vector<std::pair<value, value>> keyed;
  for (value& item : items) {
    value k = key.of(item);
    keyed.emplace_back(std::move(k), std::move(item));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    return reverse ? less(call.budget, b.first, a.first) : less(call.budget, a.first, b.first);
  });
  items.clear();
  for (auto& [k, item] : keyed) items.push_back(std::move(item));
  return items;
}

// -- text

/// Text that is safe if the filtered text is.
value like_self(native_call& call, std::string text) {
  return call.self.is_safe() ? value::safe_string(call.budget, std::move(text)) : text_value(call, std::move(text));
}

template<std::string (*convert)(std::string_view)>
value convert_text(native_call& call) {
  expect_no_arguments(call);
  const std::string text = self_text(call);
  call.budget.touch(text.size() * 8);
  return like_self(call, convert(text));
}

/// Capitalizes only after whitespace and opening brackets, unlike str.title().
std::string title_words(std::string_view text) {
  std::string out;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    utf8::append(out, first ? to_upper(c.value) : to_lower(c.value));
    first = c.value == '-' || c.value == '(' || c.value == '{' || c.value == '[' || c.value == '<' ||
            is_python_space(c.value);
    at += c.size_bytes;
  }
  return out;
}

value filter_title(native_call& call) {
  expect_no_arguments(call);
  const std::string text = self_text(call);
  call.budget.touch(text.size() * 8);
  return text_value(call, title_words(text));
}

value filter_trim(native_call& call) {
  const auto [chars] = bind_arguments(call, {"chars"});
  const std::string text = self_text(call);
  if (chars == nullptr || chars->is_none()) return like_self(call, std::string(strip(text, strip_side::both)));
  const std::string_view characters = text_argument(call, chars, "chars");
  call.budget.step(text.size() * (characters.size() + 1) / 16);
  return like_self(call, std::string(strip(text, strip_side::both, &characters)));
}

value filter_string(native_call& call) {
  expect_no_arguments(call);
  return call.self.is_string() ? call.self : text_value(call, self_text(call));
}

value filter_safe(native_call& call) {
  expect_no_arguments(call);
  return value::safe_string(call.budget, self_text(call));
}

value filter_escape(native_call& call) {
  expect_no_arguments(call);
  return made_safe(call.budget, call.self.is_string() ? call.self : text_value(call, self_text(call)));
}

value filter_forceescape(native_call& call) {
  expect_no_arguments(call);
  return value::safe_string(call.budget, escape_html(call.budget, self_text(call)));
}

value filter_wordcount(native_call& call) {
  expect_no_arguments(call);
  const std::string text = self_text(call);
  call.budget.touch(text.size() * 8);
  std::int64_t words = 0;
  bool is_in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::code_point c = utf8::decode(text, at);
    at += c.size_bytes;
    const bool is_word = is_word_character(c.value);
    words += is_word && !is_in_word ? 1 : 0;
    is_in_word = is_word;
  }
  return value::integer(words);
}

/// Cuts text that is longer than `length` by more than `leeway` characters, and appends `end`.
value filter_truncate(native_call& call) {
  const auto [length, killwords, end, leeway] = bind_arguments(call, {"length", "killwords", "end", "leeway"});
  constexpr std::int64_t usual_leeway = 5;
  const std::int64_t most = integer_argument(call, length, 255);
  const std::string mark = end == nullptr ? "..." : text_argument(call, end, "end");
  const std::int64_t more = integer_argument(call, leeway, usual_leeway);
  const std::string text = self_text(call);
  call.budget.touch(text.size() * sizeof(std::size_t));
  const std::vector<std::size_t> offsets = utf8::code_point_offsets(text);
  const auto count_mark = static_cast<std::int64_t>(utf8::code_point_offsets(mark).size() - 1);
  if (most < count_mark || more < 0) {
    throw error{"expected a length of at least the " + std::to_string(count_mark) +
                " characters of `end`, and a leeway that is not negative, in `truncate`"};
  }
  const auto characters = static_cast<std::int64_t>(offsets.size() - 1);
  if (characters - more <= most) return like_self(call, text);
  std::string kept = text.substr(0, offsets[static_cast<std::size_t>(most - count_mark)]);
  if (!boolean_argument(killwords, false)) kept = kept.substr(0, kept.rfind(' '));
  return call.self.is_safe() ? value::safe_string(call.budget, kept + escape_html(call.budget, mark))
                             : text_value(call, kept + mark);
}

value filter_replace(native_call& call) {
  const auto [from, to, count] = bind_arguments(call, {"old", "new", "count"});
  if (from == nullptr || to == nullptr) throw error{"expected two arguments of the filter `replace`"};
  return text_value(call, replace_text(call.budget, self_text(call), to_str(call.budget, *from),
                                       to_str(call.budget, *to), integer_argument(call, count, -1)));
}

value filter_indent(native_call& call) {
  const auto [width, first, blank] = bind_arguments(call, {"width", "first", "blank"});
  if (!call.self.defined().is_string()) {
    throw error{"expected a str to indent, found " + std::string(call.self.type_name())};
  }
  std::string indent;
  if (width != nullptr && width->is_string()) {
    indent = width->text();
  } else {
    indent = repeat(call.budget, text_value(call, " "), integer_argument(call, width, 4)).text();
  }
  const std::string text = call.self.text() + "\n";  // so that a final newline leaves an empty last line
  text_builder out(call.budget);
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    if (!is_first) out.append("\n");
    if (is_first ? boolean_argument(first, false) : (boolean_argument(blank, false) || !line.empty()))
      out.append(indent);
    out.append(line);
    is_first = false;
  }
  return like_self(call, out.take());
}

value filter_join(native_call& call) {
  const auto [separator, attribute] = bind_arguments(call, {"d", "attribute"});
  const std::string between = separator == nullptr ? "" : to_str(call.budget, *separator);
  const bool by_attribute = attribute != nullptr && !attribute->is_none();
  const attribute_path path = by_attribute ? attribute_path(call.budget, *attribute) : attribute_path();
  text_builder out(call.budget);
  bool first = true;
  for (const value& item : iterate(call.budget, call.self)) {
    if (!first) out.append(between);
    first = false;
    out.append_value(path.of(call.engine, item, nullptr));
  }
  return text_value(call, out.take());
}

value filter_tojson(native_call& call) {
  const auto [ascii, indent, separators, sort] =
      bind_arguments(call, {"ensure_ascii", "indent", "separators", "sort_keys"});
  json_style style;
  style.ascii_only = boolean_argument(ascii, false);
  style.sort_keys = boolean_argument(sort, false);
  if (indent != nullptr && !indent->is_none()) {
    style.has_indent = true;
    style.item_separator = ",";
    const std::int64_t width = indent->is_string() ? 0 : integer_argument(call, indent, 0);
    style.indent = indent->is_string() ? indent->text() : repeat(call.budget, text_value(call, " "), width).text();
  }
  if (separators != nullptr && !separators->is_none()) {
    const std::vector<value> both = iterate(call.budget, *separators);
    if (both.size() != 2) throw error{"expected two separators in `tojson`"};
    style.item_separator = text_argument(call, &both[0], "separators");
    style.key_separator = text_argument(call, &both[1], "separators");
  }
  text_builder out(call.budget);
  append_json(out, call.budget, call.self, style);
  return text_value(call, out.take());
}

// -- numbers

/// A number's text without surrounding whitespace and without underscores, which are allowed only between digits.
std::optional<std::string> plain_number(std::string_view text) {
  text = strip(text, strip_side::both);
  const auto is_digit_at = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
    } else if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  return out;
}

/// int(text)
std::optional<std::int64_t> parse_integer(std::string_view text) {
  const std::optional<std::string> digits = plain_number(text);
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  if (rest.starts_with('+') && !rest.starts_with("+-")) rest.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (failed == std::errc::result_out_of_range) throw error{"expected an integer of 64 bits, found a larger one"};
  if (failed != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return number;
}

/// float(text)
std::optional<double> parse_real(std::string_view text) {
  const std::optional<std::string> digits = plain_number(text);
  if (!digits) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::string word = lower(rest);
  if (word == "inf" || word == "infinity") return negative ? -INFINITY : INFINITY;
  if (word == "nan") return NAN;
  if (rest.empty() || !((rest[0] >= '0' && rest[0] <= '9') || rest[0] == '.')) return std::nullopt;
  double number = 0;
  const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (end != rest.data() + rest.size() || failed == std::errc::invalid_argument) return std::nullopt;
  if (failed == std::errc::result_out_of_range) number = std::strtod(std::string(rest).c_str(), nullptr);
  return negative ? -number : number;
}

std::optional<std::int64_t> truncated(double number) {
  if (!(std::fabs(number) < 9.2e18)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

/// int(text, base), with an optional prefix for the base.
std::optional<std::int64_t> parse_integer_of_base(std::string_view text, std::int64_t base) {
  std::optional<std::string> digits = plain_number(text);
  if (!digits || base < 2 || base > 36) return std::nullopt;
  const bool is_signed = digits->starts_with('-') || digits->starts_with('+');
  const std::string prefix = base == 16 ? "0x" : base == 8 ? "0o" : base == 2 ? "0b" : "";
  const std::size_t at = is_signed ? 1 : 0;
  if (!prefix.empty() && lower(digits->substr(at, 2)) == prefix) digits->erase(at, 2);
  if (digits->starts_with('+') && !digits->starts_with("+-")) digits->erase(0, 1);
  std::int64_t number = 0;
  const auto [end, failed] =
      std::from_chars(digits->data(), digits->data() + digits->size(), number, static_cast<int>(base));
  if (failed == std::errc::result_out_of_range) throw error{"expected an integer of 64 bits, found a larger one"};
  if (failed != std::errc() || end != digits->data() + digits->size()) return std::nullopt;
  return number;
}

value filter_int(native_call& call) {
  const auto [fallback, base] = bind_arguments(call, {"default", "base"});
  std::optional<std::int64_t> number;
  if (call.self.defined().is_string()) {
    const std::int64_t radix = integer_argument(call, base, 10);
    number = radix == 10 ? parse_integer(call.self.text()) : parse_integer_of_base(call.self.text(), radix);
    if (!number) {
      if (const auto real = parse_real(call.self.text())) number = truncated(*real);
    }
  } else if (call.self.is_integral()) {
    number = call.self.as_integer();
  } else if (call.self.is_number()) {
    number = truncated(call.self.as_real());
  }
  if (number) return value::integer(*number);
  return fallback != nullptr ? *fallback : value::integer(0);
}

value filter_float(native_call& call) {
  const auto [fallback] = bind_arguments(call, {"default"});
  if (call.self.defined().is_number()) return value::real(call.self.as_real());
  if (call.self.is_string()) {
    if (const auto number = parse_real(call.self.text())) return value::real(*number);
  }
  return fallback != nullptr ? *fallback : value::real(0);
}

value filter_abs(native_call& call) {
  expect_no_arguments(call);
  if (!call.self.defined().is_number()) {
    throw error{"expected a number for `abs`, found " + std::string(call.self.type_name())};
  }
  return apply_sign(call.self.as_real() < 0, call.self);
}

// -- values

value filter_default(native_call& call) {
  const auto [fallback, boolean] = bind_arguments(call, {"default_value", "boolean"});
  if (!call.self.is_undefined() && !(boolean_argument(boolean, false) && !call.self.truth())) return call.self;
  return fallback != nullptr ? *fallback : text_value(call, "");
}

value filter_length(native_call& call) {
  expect_no_arguments(call);
  if (call.self.is_string()) call.budget.touch(call.self.text().size() * 8);
  return value::integer(static_cast<std::int64_t>(count_elements(call.self)));
}

// -- lists

value list_value(native_call& call, std::vector<value> items) { return value::list(call.budget, std::move(items)); }

value filter_first(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> items = iterate(call.budget, call.self);
  return items.empty() ? value::undefined("No first item, sequence was empty.") : items.front();
}

value filter_last(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> items = iterate(call.budget, call.self);
  return items.empty() ? value::undefined("No last item, sequence was empty.") : items.back();
}

value filter_list(native_call& call) {
  expect_no_arguments(call);
  return list_value(call, iterate(call.budget, call.self));
}

value filter_reverse(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> items = iterate(call.budget, call.self);
  std::reverse(items.begin(), items.end());
  if (!call.self.is_string()) return list_value(call, std::move(items));
  text_builder out(call.budget);
  for (const value& item : items) out.append(item.text());
  return like_self(call, out.take());
}

value filter_sum(native_call& call) {
  const auto [attribute, start] = bind_arguments(call, {"attribute", "start"});
  const bool by_attribute = attribute != nullptr && !attribute->is_none();
  const attribute_path path = by_attribute ? attribute_path(call.budget, *attribute) : attribute_path();
  value sum = start == nullptr ? value::integer(0) : *start;
  for (const value& item : iterate(call.budget, call.self))
    sum = calculate(call.budget, expression::kind::add, sum, path.of(call.engine, item, nullptr));
  return sum;
}

/// The first of the least or greatest items.
template<bool is_greatest>
value filter_extreme(native_call& call) {
  const auto [cased, attribute] = bind_arguments(call, {"case_sensitive", "attribute"});
  const sort_key key(call, attribute, boolean_argument(cased, false), false);
  std::optional<std::pair<value, value>> best;
  for (const value& item : iterate(call.budget, call.self)) {
    value mine = key.of(item);
    if (best && !(is_greatest ? less(call.budget, best->first, mine) : less(call.budget, mine, best->first))) continue;
    best.emplace(std::move(mine), item);
  }
  return best ? best->second : value::undefined("No aggregated item, sequence was empty.");
}

value filter_sort(native_call& call) {
  const auto [reverse, cased, attribute] = bind_arguments(call, {"reverse", "case_sensitive", "attribute"});
  const sort_key key(call, attribute, boolean_argument(cased, false), true);
  return list_value(call, sorted(call, iterate(call.budget, call.self), key, boolean_argument(reverse, false)));
}

value filter_unique(native_call& call) {
  const auto [cased, attribute] = bind_arguments(call, {"case_sensitive", "attribute"});
  const sort_key key(call, attribute, boolean_argument(cased, false), false);
  std::vector<value> seen, items;
  for (const value& item : iterate(call.budget, call.self)) {
    const value k = key.of(item);
    const bool known = std::any_of(seen.begin(), seen.end(), [&](const value& s) { return equal(call.budget, s, k); });
    if (known) continue;
    seen.push_back(k);
    items.push_back(item);
  }
  return list_value(call, std::move(items));
}

value filter_dictsort(native_call& call) {
  const auto [cased, by, reverse] = bind_arguments(call, {"case_sensitive", "by", "reverse"});
  const std::string column = by == nullptr ? "key" : text_argument(call, by, "by");
  if (column != "key" && column != "value") throw error{"expected key or value as `by` of `dictsort`"};
  if (!call.self.defined().is_dict())
    throw error{"expected a dict for `dictsort`, found " + std::string(call.self.type_name())};
  std::vector<value> pairs;
  for (const auto& [key, v] : call.self.as_dict().entries) {
    pairs.push_back(value::tuple(call.budget, {key, v}));
  }
  const value index = value::integer(column == "key" ? 0 : 1);
  const sort_key key(call, &index, boolean_argument(cased, false), false);
  return list_value(call, sorted(call, std::move(pairs), key, boolean_argument(reverse, false)));
}

value filter_items(native_call& call) {
  expect_no_arguments(call);
  std::vector<value> pairs;
  if (!call.self.is_undefined()) {
    if (!call.self.is_dict()) throw error{"expected a dict for `items`, found " + std::string(call.self.type_name())};
    for (const auto& [key, v] : call.self.as_dict().entries) {
      pairs.push_back(value::tuple(call.budget, {key, v}));
    }
  }
  return list_value(call, std::move(pairs));
}

// -- filters that take a filter or a test

/// Moves the first positional argument out of the arguments.
value take_first(native_call& call, std::string_view what) {
  auto& positional = call.arguments.positional;
  if (positional.empty()) {
    throw error{"expected " + std::string(what) + " as argument of the filter `" + std::string(call.name) + "`"};
  }
  value first = std::move(positional.front());
  positional.erase(positional.begin());
  return first;
}

value filter_map(native_call& call) {
  std::vector<value> items;
  if (!call.self.truth()) return list_value(call, {});
  if (call.arguments.positional.empty()) {
    const auto [attribute, fallback] = bind_arguments(call, {"attribute", "default"});
    if (attribute == nullptr) throw error{"expected the name of a filter or `attribute` in `map`"};
    const attribute_path path(call.budget, *attribute);
    const value* otherwise = fallback != nullptr && !fallback->is_none() ? fallback : nullptr;
    for (const value& item : iterate(call.budget, call.self)) {
      items.push_back(path.of(call.engine, item, otherwise));
    }
    return list_value(call, std::move(items));
  }
  const value name = take_first(call, "the name of a filter");
  const std::string& filter = text_argument(call, &name, "name");
  for (const value& item : iterate(call.budget, call.self)) {
    call_arguments arguments = call.arguments;
    items.push_back(call.engine.apply_filter(filter, item, arguments));
  }
  return list_value(call, std::move(items));
}

value chosen(native_call& call, bool by_attribute, bool wanted) {
  if (!call.self.truth()) return list_value(call, {});
  const attribute_path path =
      by_attribute ? attribute_path(call.budget, take_first(call, "an attribute")) : attribute_path();
  const bool has_test = !call.arguments.positional.empty();
  const value name = has_test ? take_first(call, "a test") : value();
  std::vector<value> items;
  for (const value& item : iterate(call.budget, call.self)) {
    const value subject = path.of(call.engine, item, nullptr);
    call_arguments arguments = call.arguments;
    const bool holds =
        has_test ? call.engine.apply_test(text_argument(call, &name, "test"), subject, arguments) : subject.truth();
    if (holds == wanted) items.push_back(item);
  }
  return list_value(call, std::move(items));
}
value filter_select(native_call& call) { return chosen(call, false, true); }
value filter_reject(native_call& call) { return chosen(call, false, false); }
value filter_selectattr(native_call& call) { return chosen(call, true, true); }
value filter_rejectattr(native_call& call) { return chosen(call, true, false); }

constexpr std::pair<std::string_view, native_function> filters[] = {
    {"abs", filter_abs},
    {"capitalize", convert_text<capitalize>},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"forceescape", filter_forceescape},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", convert_text<lower>},
    {"map", filter_map},
    {"max", filter_extreme<true>},
    {"min", filter_extreme<false>},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"safe", filter_safe},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", convert_text<upper>},
    {"wordcount", filter_wordcount},
};

}  // namespace

native_function find_filter(std::string_view name) {
  const auto found =
      std::find_if(std::begin(filters), std::end(filters), [&](const auto& f) { return f.first == name; });
  return found == std::end(filters) ? nullptr : found->second;
}

}  // namespace redline::jinja
