#include "runtime/jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/base/utf8.hpp"
#include "runtime/jinja/object.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::jinja {
namespace {

using entry = std::pair<value, value>;
using kind = value::kind;

constexpr std::size_t object_overhead_bytes = 64;  // control block, header and allocator slack
constexpr std::size_t indexed_from_count = 9;      // smaller dicts are searched linearly

std::uint32_t checked_nesting(render_budget& budget, std::uint32_t inner) {
  if (inner + 1 > budget.limits().nesting_max) {
    throw error{"expected lists and dicts nested at most " + std::to_string(budget.limits().nesting_max) +
                " levels deep"};
  }
  return inner + 1;
}

/// Bytes that a value owns without having been charged for them.
std::size_t uncounted_bytes(const value& v) {
  return v.is_undefined() || v.type() == kind::object ? 2 * object_overhead_bytes : 0;
}

void check_hashable(const value& key) {
  if ((key.is_list() && !key.as_list().is_tuple) || key.is_dict()) {
    throw error{"expected a hashable dict key, found " + std::string(key.type_name())};
  }
}

/// Returns -1, 0, 1, or 2 for "not ordered" (NaN). Exact even between an integer and a real beyond 2^53.
int compare_numbers(const value& a, const value& b) {
  if (a.is_integral() && b.is_integral()) {
    const auto x = a.as_integer(), y = b.as_integer();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const auto x = static_cast<long double>(a.is_integral() ? static_cast<long double>(a.as_integer()) : a.as_real());
  const auto y = static_cast<long double>(b.is_integral() ? static_cast<long double>(b.as_integer()) : b.as_real());
  if (x != x || y != y) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

void append_joined(text_builder& out, render_budget& budget, const std::vector<value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(out, budget, items[i]);
  }
}

}  // namespace

void render_budget::throw_steps() const {
  throw error{"expected at most " + std::to_string(limits_.steps_max) + " steps of work, found more"};
}

void render_budget::throw_memory() const {
  throw error{"expected at most " + std::to_string(limits_.memory_bytes_max) + " bytes of values, found more"};
}

void render_budget::throw_depth() const {
  throw error{"expected at most " + std::to_string(limits_.depth_max) + " nested expressions, found more"};
}

value::text_object::text_object(render_budget& budget, std::string t, bool safe)
    : text(std::move(t)), is_safe(safe), charge(budget, text.size() + object_overhead_bytes) {}

value value::undefined(std::string why) {
  return value(undefined_value{std::make_shared<const std::string>(std::move(why))});
}

value value::string(render_budget& budget, std::string text) {
  return value(text_ref(std::make_shared<const text_object>(budget, std::move(text), false)));
}

value value::safe_string(render_budget& budget, std::string text) {
  return value(text_ref(std::make_shared<const text_object>(budget, std::move(text), true)));
}

value value::sequence(render_budget& budget, std::vector<value> items, bool is_tuple) {
  budget.step(items.size());
  std::uint32_t inner = 0;
  std::size_t bytes = items.size() * sizeof(value) + object_overhead_bytes;
  for (const value& item : items) {
    inner = std::max(inner, item.nesting());
    bytes += uncounted_bytes(item);
  }
  const std::uint32_t nesting = checked_nesting(budget, inner);
  return value(list_ref(new list_object{std::move(items), is_tuple, nesting, {budget, bytes}}));
}

value value::dict(render_budget& budget, std::vector<entry> entries) {
  return value(dict_ref(std::make_shared<const dict_object>(budget, std::move(entries))));
}

value value::from_json(render_budget& budget, const nlohmann::ordered_json& json, std::uint32_t depth) {
  budget.step();
  if (depth > budget.limits().nesting_max) {
    throw error{"expected input nested at most " + std::to_string(budget.limits().nesting_max) + " levels deep"};
  }
  switch (json.type()) {
    case nlohmann::json::value_t::boolean:
      return boolean(json.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return integer(json.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(INT64_MAX)) return integer(static_cast<std::int64_t>(number));
      return real(static_cast<double>(number));
    }
    case nlohmann::json::value_t::number_float:
      return real(json.get<double>());
    case nlohmann::json::value_t::string:
      return string(budget, json.get_ref<const std::string&>());
    case nlohmann::json::value_t::array: {
      std::vector<value> items;
      for (const auto& item : json) items.push_back(from_json(budget, item, depth + 1));
      return list(budget, std::move(items));
    }
    case nlohmann::json::value_t::object: {
      std::vector<entry> entries;
      for (const auto& [key, item] : json.items()) {
        entries.emplace_back(string(budget, key), from_json(budget, item, depth + 1));
      }
      return dict(budget, std::move(entries));
    }
    default:
      return {};
  }
}

std::int64_t value::as_integer() const {
  return type() == kind::boolean ? (as_boolean() ? 1 : 0) : std::get<std::int64_t>(state_);
}

double value::as_real() const {
  return type() == kind::real ? std::get<double>(state_) : static_cast<double>(as_integer());
}

std::string_view value::type_name() const {
  switch (type()) {
    case kind::undefined:
      return "undefined";
    case kind::none:
      return "None";
    case kind::boolean:
      return "bool";
    case kind::integer:
      return "int";
    case kind::real:
      return "float";
    case kind::string:
      return "str";
    case kind::list:
      return as_list().is_tuple ? "tuple" : "list";
    case kind::dict:
      return "dict";
    case kind::object:
      return as_object()->type_name();
  }
  return "?";
}

std::uint32_t value::nesting() const {
  if (is_list()) return as_list().nesting;
  if (is_dict()) return as_dict().nesting;
  return type() == kind::object ? as_object()->nesting() : 0;
}

bool value::truth() const {
  switch (type()) {
    case kind::undefined:
    case kind::none:
      return false;
    case kind::boolean:
    case kind::integer:
      return as_integer() != 0;
    case kind::real:
      return as_real() != 0;
    case kind::string:
      return !text().empty();
    case kind::list:
      return !as_list().items.empty();
    case kind::dict:
      return !as_dict().entries.empty();
    case kind::object:
      return true;
  }
  return false;
}

bool value::same_as(const value& other) const {
  if (type() != other.type()) return false;
  switch (type()) {
    case kind::undefined:
      return std::get<undefined_value>(state_).why == std::get<undefined_value>(other.state_).why;
    case kind::none:
      return true;
    case kind::boolean:
    case kind::integer:
      return as_integer() == other.as_integer();
    case kind::real:
      return as_real() == other.as_real();
    case kind::string:
      return text() == other.text();
    case kind::list:
      return &as_list() == &other.as_list();
    case kind::dict:
      return &as_dict() == &other.as_dict();
    case kind::object:
      return as_object() == other.as_object();
  }
  return false;
}

const value& value::defined() const {
  if (is_undefined()) throw error{*std::get<undefined_value>(state_).why};
  return *this;
}

dict_object::dict_object(render_budget& budget, std::vector<entry> from)
    : charge_(budget, from.size() * 2 * sizeof(entry) + object_overhead_bytes) {
  budget.step(from.size());
  const bool indexed = from.size() >= indexed_from_count;
  std::uint32_t inner = 0;
  entries.reserve(from.size());  // keys must not move, because by_text_ refers to them
  for (auto& [key, item] : from) {
    check_hashable(key);
    inner = std::max({inner, key.nesting(), item.nesting()});
    charge_.grow(uncounted_bytes(key) + uncounted_bytes(item));
    if (const value* known = find(budget, key)) {
      const_cast<value&>(*known) = std::move(item);
      continue;
    }
    entries.emplace_back(std::move(key), std::move(item));
    const value& kept = entries.back().first;
    if (indexed && kept.is_string()) by_text_.emplace(kept.text(), entries.size() - 1);
  }
  nesting = checked_nesting(budget, inner);
}

const value* dict_object::find(std::string_view key) const {
  if (!by_text_.empty()) {
    const auto found = by_text_.find(key);
    return found == by_text_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [k, v] : entries) {
    if (k.is_string() && k.text() == key) return &v;
  }
  return nullptr;
}

const value* dict_object::find(render_budget& budget, const value& key) const {
  check_hashable(key);
  if (key.is_string() && (!by_text_.empty() || entries.size() < indexed_from_count)) return find(key.text());
  budget.step(entries.size());
  for (const auto& [k, v] : entries) {
    if (equal(budget, k, key)) return &v;
  }
  return nullptr;
}

void text_builder::append(std::string_view more) {
  if (more.size() > bytes_max_ - text_.size()) {
    throw error{"expected at most " + std::to_string(bytes_max_) + " bytes of output, found more"};
  }
  budget_.touch(more.size());
  charge_.grow(more.size());
  text_ += more;
}

void text_builder::append_value(const value& v) {
  if (v.is_string()) {
    append(v.text());
  } else if (!v.is_undefined()) {
    append_repr(*this, budget_, v);
  }
}

std::string to_str(render_budget& budget, const value& v) {
  if (v.is_string()) {
    budget.touch(v.text().size());
    return v.text();
  }
  text_builder out(budget);
  out.append_value(v);
  return out.take();
}

void append_repr(text_builder& out, render_budget& budget, const value& v) {
  budget.step();
  switch (v.type()) {
    case kind::undefined:
      return out.append("Undefined");
    case kind::none:
      return out.append("None");
    case kind::boolean:
      return out.append(v.as_boolean() ? "True" : "False");
    case kind::integer:
      return out.append(std::to_string(v.as_integer()));
    case kind::real:
      return out.append(python_float(v.as_real()));
    case kind::string:
      return out.append(v.is_safe() ? "Markup(" + python_quoted(v.text()) + ")" : python_quoted(v.text()));
    case kind::list: {
      const list_object& list = v.as_list();
      out.append(list.is_tuple ? "(" : "[");
      append_joined(out, budget, list.items);
      if (list.is_tuple && list.items.size() == 1) out.append(",");
      return out.append(list.is_tuple ? ")" : "]");
    }
    case kind::dict: {
      out.append("{");
      bool first = true;
      for (const auto& [key, item] : v.as_dict().entries) {
        if (!first) out.append(", ");
        first = false;
        append_repr(out, budget, key);
        out.append(": ");
        append_repr(out, budget, item);
      }
      return out.append("}");
    }
    case kind::object:
      return out.append("<" + std::string(v.as_object()->type_name()) + ">");
  }
}

bool equal(render_budget& budget, const value& a, const value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.type() != b.type()) return false;
  switch (a.type()) {
    case kind::undefined:
    case kind::none:
      return true;
    case kind::string:
      budget.touch(a.text().size());
      return a.text() == b.text();
    case kind::list: {
      const list_object &x = a.as_list(), &y = b.as_list();
      if (x.is_tuple != y.is_tuple || x.items.size() != y.items.size()) return false;
      for (std::size_t i = 0; i < x.items.size(); ++i) {
        if (!equal(budget, x.items[i], y.items[i])) return false;
      }
      return true;
    }
    case kind::dict: {
      const dict_object &x = a.as_dict(), &y = b.as_dict();
      if (x.entries.size() != y.entries.size()) return false;
      for (const auto& [key, item] : x.entries) {
        const value* other = y.find(budget, key);
        if (other == nullptr || !equal(budget, item, *other)) return false;
      }
      return true;
    }
    default:
      return a.same_as(b);
  }
}

bool less(render_budget& budget, const value& a, const value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == -1;
  if (a.is_string() && b.is_string()) {
    budget.touch(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();  // the byte order of UTF-8 is the order of code points
  }
  if (a.is_list() && b.is_list() && a.as_list().is_tuple == b.as_list().is_tuple) {
    const auto &x = a.as_list().items, &y = b.as_list().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(budget, x[i], y[i])) return less(budget, x[i], y[i]);
    }
    return x.size() < y.size();
  }
  a.defined(), b.defined();
  throw error{"expected values that can be ordered, found " + std::string(a.type_name()) + " and " +
              std::string(b.type_name())};
}

bool contains(render_budget& budget, const value& container, const value& item) {
  switch (container.type()) {
    case kind::undefined:
      return false;
    case kind::string:
      item.defined();
      if (!item.is_string()) throw error{"expected a str to look for in a str, found " + std::string(item.type_name())};
      budget.touch(container.text().size());
      return container.text().find(item.text()) != std::string::npos;
    case kind::list:
      for (const value& candidate : container.as_list().items) {
        if (equal(budget, candidate, item)) return true;
      }
      return false;
    case kind::dict:
      return container.as_dict().find(budget, item) != nullptr;
    default:
      throw error{"expected a container after `in`, found " + std::string(container.type_name())};
  }
}

std::size_t count_elements(const value& v) {
  switch (v.type()) {
    case kind::undefined:
      return 0;
    case kind::string:
      return utf8::count_code_points(v.text());
    case kind::list:
      return v.as_list().items.size();
    case kind::dict:
      return v.as_dict().entries.size();
    default:
      throw error{"expected something with a length, found " + std::string(v.type_name())};
  }
}

std::vector<value> iterate(render_budget& budget, const value& v) {
  std::vector<value> items;
  switch (v.type()) {
    case kind::undefined:
      return items;
    case kind::list:
      budget.step(v.as_list().items.size());
      return v.as_list().items;
    case kind::dict:
      budget.step(v.as_dict().entries.size());
      for (const auto& [key, item] : v.as_dict().entries) items.push_back(key);
      return items;
    case kind::string: {
      const std::string& text = v.text();
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = utf8::decode(text, at).size_bytes;
        items.push_back(value::string(budget, text.substr(at, length)));
        budget.step();
        at += length;
      }
      return items;
    }
    default:
      throw error{"expected something to iterate over, found " + std::string(v.type_name())};
  }
}

namespace {

void append_line(text_builder& out, const json_style& style, std::size_t level) {
  if (!style.has_indent) return;
  out.append("\n");
  for (std::size_t i = 0; i < level; ++i) out.append(style.indent);
}

std::string json_key(const value& key, const json_style& style) {
  switch (key.type()) {
    case kind::string:
      return json_quoted(key.text(), style.ascii_only);
    case kind::none:
      return "\"null\"";
    case kind::boolean:
      return key.as_boolean() ? "\"true\"" : "\"false\"";
    case kind::integer:
      return "\"" + std::to_string(key.as_integer()) + "\"";
    case kind::real:
      return "\"" + python_float(key.as_real()) + "\"";
    default:
      throw error{"expected a JSON key, found " + std::string(key.type_name())};
  }
}

std::string json_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return python_float(number);
}

void json_items(text_builder& out, render_budget& budget, const std::vector<value>& items, const json_style& style,
                std::size_t level) {
  if (items.empty()) return out.append("[]");
  out.append("[");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    append_line(out, style, level + 1);
    append_json(out, budget, items[i], style, level + 1);
  }
  append_line(out, style, level);
  out.append("]");
}

void json_entries(text_builder& out, render_budget& budget, std::vector<entry> entries, const json_style& style,
                  std::size_t level) {
  if (entries.empty()) return out.append("{}");
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const entry& a, const entry& b) { return less(budget, a.first, b.first); });
  }
  out.append("{");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    append_line(out, style, level + 1);
    out.append(json_key(entries[i].first, style));
    out.append(style.key_separator);
    append_json(out, budget, entries[i].second, style, level + 1);
  }
  append_line(out, style, level);
  out.append("}");
}

}  // namespace

void append_json(text_builder& out, render_budget& budget, const value& v, const json_style& style, std::size_t level) {
  budget.step();
  switch (v.type()) {
    case kind::none:
      return out.append("null");
    case kind::boolean:
      return out.append(v.as_boolean() ? "true" : "false");
    case kind::integer:
      return out.append(std::to_string(v.as_integer()));
    case kind::real:
      return out.append(json_float(v.as_real()));
    case kind::string:
      return out.append(json_quoted(v.text(), style.ascii_only));
    case kind::list:
      return json_items(out, budget, v.as_list().items, style, level);
    case kind::dict:
      return json_entries(out, budget, v.as_dict().entries, style, level);
    default:
      throw error{"expected a value that JSON can represent, found " + std::string(v.type_name())};
  }
}

}  // namespace redline::jinja
