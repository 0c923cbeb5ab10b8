#include "runtime/jinja/value.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "runtime/jinja/object.hpp"
#include "runtime/jinja/text.hpp"

namespace redline::text {
namespace {

using entry = std::pair<jinja_value, jinja_value>;
using kind = jinja_value::kind;

constexpr std::size_t object_overhead_bytes = 64;  // control block, header and allocator slack
constexpr std::size_t indexed_from_count = 9;      // smaller dicts are searched

std::uint32_t checked_nesting(jinja_budget& budget, std::uint32_t inner) {
  if (inner + 1 > budget.limits().nesting_max) {
    throw jinja_error{"wanted lists and dicts at most " + std::to_string(budget.limits().nesting_max) + " levels deep"};
  }
  return inner + 1;
}

/// Of what a value owns without having been charged for it.
std::size_t uncounted_bytes(const jinja_value& value) {
  return value.is_undefined() || value.type() == kind::object ? 2 * object_overhead_bytes : 0;
}

void check_hashable(const jinja_value& key) {
  if ((key.is_list() && !key.as_list().is_tuple) || key.is_dict()) {
    throw jinja_error{"wanted a hashable dict key, found " + std::string(key.type_name())};
  }
}

/// -1, 0, 1, or 2 for "not ordered" (NaN). Exact also between an integer and a real beyond 2^53.
int compare_numbers(const jinja_value& a, const jinja_value& b) {
  if (a.is_integral() && b.is_integral()) {
    const auto x = a.as_integer(), y = b.as_integer();
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const auto x = static_cast<long double>(a.is_integral() ? static_cast<long double>(a.as_integer()) : a.as_real());
  const auto y = static_cast<long double>(b.is_integral() ? static_cast<long double>(b.as_integer()) : b.as_real());
  if (x != x || y != y) return 2;
  return x < y ? -1 : x > y ? 1 : 0;
}

void append_joined(jinja_text_builder& out, jinja_budget& budget, const std::vector<jinja_value>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(", ");
    jinja_repr(out, budget, items[i]);
  }
}

}  // namespace

void jinja_budget::throw_steps() const {
  throw jinja_error{"wanted at most " + std::to_string(limits_.steps_max) + " steps of work, the template goes on"};
}

void jinja_budget::throw_memory() const {
  throw jinja_error{"wanted at most " + std::to_string(limits_.memory_bytes_max) + " bytes of values, found more"};
}

void jinja_budget::throw_depth() const {
  throw jinja_error{"wanted at most " + std::to_string(limits_.depth_max) +
                    " expressions inside each other, found more"};
}

jinja_value::text_object::text_object(jinja_budget& budget, std::string t)
    : text(std::move(t)), charge(budget, text.size() + object_overhead_bytes) {}

jinja_value jinja_value::undefined(std::string why) {
  return jinja_value(undefined_value{std::make_shared<const std::string>(std::move(why))});
}

jinja_value jinja_value::string(jinja_budget& budget, std::string text) {
  return jinja_value(text_ref(std::make_shared<const text_object>(budget, std::move(text))));
}

jinja_value jinja_value::sequence(jinja_budget& budget, std::vector<jinja_value> items, bool is_tuple) {
  budget.step(items.size());
  std::uint32_t inner = 0;
  std::size_t bytes = items.size() * sizeof(jinja_value) + object_overhead_bytes;
  for (const jinja_value& item : items) {
    inner = std::max(inner, item.nesting());
    bytes += uncounted_bytes(item);
  }
  const std::uint32_t nesting = checked_nesting(budget, inner);
  return jinja_value(list_ref(new jinja_list{std::move(items), is_tuple, nesting, {budget, bytes}}));
}

jinja_value jinja_value::dict(jinja_budget& budget, std::vector<entry> entries) {
  return jinja_value(dict_ref(std::make_shared<const jinja_dict>(budget, std::move(entries))));
}

jinja_value jinja_value::from_json(jinja_budget& budget, const nlohmann::ordered_json& json, std::uint32_t depth) {
  budget.step();
  if (depth > budget.limits().nesting_max) {
    throw jinja_error{"wanted input at most " + std::to_string(budget.limits().nesting_max) + " levels deep"};
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
      std::vector<jinja_value> items;
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

std::int64_t jinja_value::as_integer() const {
  return type() == kind::boolean ? (as_boolean() ? 1 : 0) : std::get<std::int64_t>(state_);
}

double jinja_value::as_real() const {
  return type() == kind::real ? std::get<double>(state_) : static_cast<double>(as_integer());
}

std::string_view jinja_value::type_name() const {
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

std::uint32_t jinja_value::nesting() const {
  if (is_list()) return as_list().nesting;
  if (is_dict()) return as_dict().nesting;
  return type() == kind::object ? as_object()->nesting() : 0;
}

bool jinja_value::truth() const {
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

bool jinja_value::same_as(const jinja_value& other) const {
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

const jinja_value& jinja_value::defined() const {
  if (is_undefined()) throw jinja_error{*std::get<undefined_value>(state_).why};
  return *this;
}

jinja_dict::jinja_dict(jinja_budget& budget, std::vector<entry> from)
    : charge_(budget, from.size() * 2 * sizeof(entry) + object_overhead_bytes) {
  budget.step(from.size());
  const bool indexed = from.size() >= indexed_from_count;
  std::uint32_t inner = 0;
  entries.reserve(from.size());  // keys must not move: by_text_ looks into them
  for (auto& [key, item] : from) {
    check_hashable(key);
    inner = std::max({inner, key.nesting(), item.nesting()});
    charge_.grow(uncounted_bytes(key) + uncounted_bytes(item));
    if (const jinja_value* known = find(budget, key)) {
      const_cast<jinja_value&>(*known) = std::move(item);
      continue;
    }
    entries.emplace_back(std::move(key), std::move(item));
    const jinja_value& kept = entries.back().first;
    if (indexed && kept.is_string()) by_text_.emplace(kept.text(), entries.size() - 1);
  }
  nesting = checked_nesting(budget, inner);
}

const jinja_value* jinja_dict::find(std::string_view key) const {
  if (!by_text_.empty()) {
    const auto found = by_text_.find(key);
    return found == by_text_.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [k, v] : entries) {
    if (k.is_string() && k.text() == key) return &v;
  }
  return nullptr;
}

const jinja_value* jinja_dict::find(jinja_budget& budget, const jinja_value& key) const {
  check_hashable(key);
  if (key.is_string() && (!by_text_.empty() || entries.size() < indexed_from_count)) return find(key.text());
  budget.step(entries.size());
  for (const auto& [k, v] : entries) {
    if (jinja_equal(budget, k, key)) return &v;
  }
  return nullptr;
}

void jinja_text_builder::append(std::string_view more) {
  if (more.size() > bytes_max_ - text_.size()) {
    throw jinja_error{"wanted at most " + std::to_string(bytes_max_) + " bytes of output, found more"};
  }
  budget_.touch(more.size());
  charge_.grow(more.size());
  text_ += more;
}

void jinja_text_builder::append_value(const jinja_value& value) {
  if (value.is_string()) {
    append(value.text());
  } else if (!value.is_undefined()) {
    jinja_repr(*this, budget_, value);
  }
}

std::string jinja_str(jinja_budget& budget, const jinja_value& value) {
  if (value.is_string()) {
    budget.touch(value.text().size());
    return value.text();
  }
  jinja_text_builder out(budget);
  out.append_value(value);
  return out.take();
}

void jinja_repr(jinja_text_builder& out, jinja_budget& budget, const jinja_value& value) {
  budget.step();
  switch (value.type()) {
    case kind::undefined:
      return out.append("Undefined");
    case kind::none:
      return out.append("None");
    case kind::boolean:
      return out.append(value.as_boolean() ? "True" : "False");
    case kind::integer:
      return out.append(std::to_string(value.as_integer()));
    case kind::real:
      return out.append(python_float(value.as_real()));
    case kind::string:
      return out.append(python_quoted(value.text()));
    case kind::list: {
      const jinja_list& list = value.as_list();
      out.append(list.is_tuple ? "(" : "[");
      append_joined(out, budget, list.items);
      if (list.is_tuple && list.items.size() == 1) out.append(",");
      return out.append(list.is_tuple ? ")" : "]");
    }
    case kind::dict: {
      out.append("{");
      bool first = true;
      for (const auto& [key, item] : value.as_dict().entries) {
        if (!first) out.append(", ");
        first = false;
        jinja_repr(out, budget, key);
        out.append(": ");
        jinja_repr(out, budget, item);
      }
      return out.append("}");
    }
    case kind::object:
      return out.append("<" + std::string(value.as_object()->type_name()) + ">");
  }
}

bool jinja_equal(jinja_budget& budget, const jinja_value& a, const jinja_value& b) {
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
      const jinja_list &x = a.as_list(), &y = b.as_list();
      if (x.is_tuple != y.is_tuple || x.items.size() != y.items.size()) return false;
      for (std::size_t i = 0; i < x.items.size(); ++i) {
        if (!jinja_equal(budget, x.items[i], y.items[i])) return false;
      }
      return true;
    }
    case kind::dict: {
      const jinja_dict &x = a.as_dict(), &y = b.as_dict();
      if (x.entries.size() != y.entries.size()) return false;
      for (const auto& [key, item] : x.entries) {
        const jinja_value* other = y.find(budget, key);
        if (other == nullptr || !jinja_equal(budget, item, *other)) return false;
      }
      return true;
    }
    default:
      return a.same_as(b);
  }
}

bool jinja_less(jinja_budget& budget, const jinja_value& a, const jinja_value& b) {
  budget.step();
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == -1;
  if (a.is_string() && b.is_string()) {
    budget.touch(std::min(a.text().size(), b.text().size()));
    return a.text() < b.text();  // bytes of UTF-8 order as code points do
  }
  if (a.is_list() && b.is_list() && a.as_list().is_tuple == b.as_list().is_tuple) {
    const auto &x = a.as_list().items, &y = b.as_list().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!jinja_equal(budget, x[i], y[i])) return jinja_less(budget, x[i], y[i]);
    }
    return x.size() < y.size();
  }
  a.defined(), b.defined();
  throw jinja_error{"wanted values that can be ordered, found " + std::string(a.type_name()) + " and " +
                    std::string(b.type_name())};
}

bool jinja_contains(jinja_budget& budget, const jinja_value& container, const jinja_value& item) {
  switch (container.type()) {
    case kind::undefined:
      return false;
    case kind::string:
      item.defined();
      if (!item.is_string())
        throw jinja_error{"wanted a str to look for in a str, found " + std::string(item.type_name())};
      budget.touch(container.text().size());
      return container.text().find(item.text()) != std::string::npos;
    case kind::list:
      for (const jinja_value& candidate : container.as_list().items) {
        if (jinja_equal(budget, candidate, item)) return true;
      }
      return false;
    case kind::dict:
      return container.as_dict().find(budget, item) != nullptr;
    default:
      throw jinja_error{"wanted a container after `in`, found " + std::string(container.type_name())};
  }
}

std::size_t jinja_length(const jinja_value& value) {
  switch (value.type()) {
    case kind::undefined:
      return 0;
    case kind::string:
      return count_code_points(value.text());
    case kind::list:
      return value.as_list().items.size();
    case kind::dict:
      return value.as_dict().entries.size();
    default:
      throw jinja_error{"wanted something with a length, found " + std::string(value.type_name())};
  }
}

std::vector<jinja_value> jinja_iterate(jinja_budget& budget, const jinja_value& value) {
  std::vector<jinja_value> items;
  switch (value.type()) {
    case kind::undefined:
      return items;
    case kind::list:
      budget.step(value.as_list().items.size());
      return value.as_list().items;
    case kind::dict:
      budget.step(value.as_dict().entries.size());
      for (const auto& [key, item] : value.as_dict().entries) items.push_back(key);
      return items;
    case kind::string: {
      const std::string& text = value.text();
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = decode_code_point(text, at).length;
        items.push_back(jinja_value::string(budget, text.substr(at, length)));
        budget.step();
        at += length;
      }
      return items;
    }
    default:
      throw jinja_error{"wanted something to iterate over, found " + std::string(value.type_name())};
  }
}

namespace {

void append_line(jinja_text_builder& out, const json_style& style, std::size_t level) {
  if (!style.has_indent) return;
  out.append("\n");
  for (std::size_t i = 0; i < level; ++i) out.append(style.indent);
}

std::string json_key(const jinja_value& key, const json_style& style) {
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
      throw jinja_error{"wanted a JSON key, found " + std::string(key.type_name())};
  }
}

std::string json_float(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return python_float(number);
}

void json_items(jinja_text_builder& out, jinja_budget& budget, const std::vector<jinja_value>& items,
                const json_style& style, std::size_t level) {
  if (items.empty()) return out.append("[]");
  out.append("[");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    append_line(out, style, level + 1);
    jinja_to_json(out, budget, items[i], style, level + 1);
  }
  append_line(out, style, level);
  out.append("]");
}

void json_entries(jinja_text_builder& out, jinja_budget& budget, std::vector<entry> entries, const json_style& style,
                  std::size_t level) {
  if (entries.empty()) return out.append("{}");
  if (style.sort_keys) {
    std::stable_sort(entries.begin(), entries.end(),
                     [&](const entry& a, const entry& b) { return jinja_less(budget, a.first, b.first); });
  }
  out.append("{");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    append_line(out, style, level + 1);
    out.append(json_key(entries[i].first, style));
    out.append(style.key_separator);
    jinja_to_json(out, budget, entries[i].second, style, level + 1);
  }
  append_line(out, style, level);
  out.append("}");
}

}  // namespace

void jinja_to_json(jinja_text_builder& out, jinja_budget& budget, const jinja_value& value, const json_style& style,
                   std::size_t level) {
  budget.step();
  switch (value.type()) {
    case kind::none:
      return out.append("null");
    case kind::boolean:
      return out.append(value.as_boolean() ? "true" : "false");
    case kind::integer:
      return out.append(std::to_string(value.as_integer()));
    case kind::real:
      return out.append(json_float(value.as_real()));
    case kind::string:
      return out.append(json_quoted(value.text(), style.ascii_only));
    case kind::list:
      return json_items(out, budget, value.as_list().items, style, level);
    case kind::dict:
      return json_entries(out, budget, value.as_dict().entries, style, level);
    default:
      throw jinja_error{"wanted a value that JSON can hold, found " + std::string(value.type_name())};
  }
}

}  // namespace redline::text
