#include "actors/http/fields/field_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/base/edit_distance.hpp"

namespace redline::api {
namespace {

std::string text_of(double value) { return dump_json(json(value)); }

}  // namespace

std::string indexed(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

std::string_view kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return "null";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "an array";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "a boolean";
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return "an integer";
    case json::value_t::number_float:
      return "a number";
    default:
      return "something else";
  }
}

std::string_view nearest(std::string_view text, std::span<const std::string_view> known) {
  if (text.size() > 64) return {};
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const auto name : known) {
    const auto distance = edit_distance(text, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::optional<std::int64_t> as_integer(const json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.get<std::uint64_t>();
    if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
    return static_cast<std::int64_t>(n);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  return std::nullopt;
}

field_reader::field_reader(const json& object, std::string path, std::optional<api_error>& error)
    : object_(object), path_(std::move(path)), error_(error) {}

const json* field_reader::find(std::string_view name) const {
  read_.emplace_back(name);
  for (const auto& [key, value] : object_.get_ref<const json::object_t&>()) {
    if (key == name) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

std::vector<field_reader::named_value> field_reader::unread() const {
  std::vector<named_value> rest;
  for (const auto& [key, value] : object_.get_ref<const json::object_t&>()) {
    if (!value.is_null() && std::find(read_.begin(), read_.end(), key) == read_.end()) rest.emplace_back(key, &value);
  }
  return rest;
}

std::string field_reader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void field_reader::refuse(std::string_view name, std::string message, std::string code) {
  if (!error_) error_ = bad_field(path_of(name), std::move(message), std::move(code));
}

void field_reader::refuse_type(std::string_view name, std::string_view wanted, const json& found) {
  refuse(name,
         "'" + path_of(name) + "' must be " + std::string(wanted) + ", found " + std::string(kind_of(found)) + ".");
}

std::optional<bool> field_reader::boolean(std::string_view name) {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse_type(name, "a boolean", *value);
  return std::nullopt;
}

std::optional<double> field_reader::number(std::string_view name, double min, double max) {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) {
    refuse_type(name, "a number", *value);
    return std::nullopt;
  }
  const double n = value->get<double>();
  if (n >= min && n <= max) return n;
  refuse(name, "'" + path_of(name) + "' must be from " + text_of(min) + " to " + text_of(max) + ", found " +
                   text_of(n) + ".");
  return std::nullopt;
}

std::optional<std::int64_t> field_reader::integer(std::string_view name, std::int64_t min, std::int64_t max) {
  const json* value = find(name);
  if (!value) return std::nullopt;
  // Some languages write 5 as 5.0.
  std::optional<std::int64_t> n = as_integer(*value);
  if (!n && value->is_number_float()) {
    const double d = value->get<double>();
    if (d == std::floor(d) && std::abs(d) < 9e15) n = static_cast<std::int64_t>(d);
  }
  if (!n && !value->is_number_unsigned()) {
    refuse_type(name, "an integer", *value);
    return std::nullopt;
  }
  if (n && *n >= min && *n <= max) return n;
  refuse(name, "'" + path_of(name) + "' must be an integer from " + std::to_string(min) + " to " + std::to_string(max) +
                   ", found " + dump_json(*value) + ".");
  return std::nullopt;
}

std::optional<std::string> field_reader::text(std::string_view name, std::size_t bytes_max) {
  const json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) {
    refuse_type(name, "a string", *value);
    return std::nullopt;
  }
  const auto& string = value->get_ref<const std::string&>();
  if (string.size() <= bytes_max) return string;
  refuse(name, "'" + path_of(name) + "' has " + std::to_string(string.size()) + " bytes, at most " +
                   std::to_string(bytes_max) + " are allowed.");
  return std::nullopt;
}

const json* field_reader::object(std::string_view name) {
  const json* value = find(name);
  if (!value || value->is_object()) return value;
  refuse_type(name, "an object", *value);
  return nullptr;
}

const json* field_reader::array(std::string_view name, std::size_t count_max) {
  const json* value = find(name);
  if (!value) return nullptr;
  if (!value->is_array()) {
    refuse_type(name, "an array", *value);
    return nullptr;
  }
  if (value->size() <= count_max) return value;
  refuse(name, "'" + path_of(name) + "' has " + std::to_string(value->size()) + " entries, at most " +
                   std::to_string(count_max) + " are allowed.");
  return nullptr;
}

void field_reader::allow_only(std::span<const std::string_view> known) {
  for (const auto& [key, value] : object_.get_ref<const json::object_t&>()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const auto meant = nearest(key, known);
    std::string message = "'" + path_of(key.substr(0, 64)) + "' is unknown.";
    if (!meant.empty()) message += " Did you mean '" + std::string(meant) + "'?";
    refuse(key.substr(0, 64), std::move(message));
  }
}

checked<json> parse_body(std::string_view body) {
  auto parsed = parse_json<json>(body);
  if (!parsed) return bad_field("", "The request body is " + parsed.error().context + ".");
  if (!parsed->is_object()) {
    return bad_field("", "The request body must be a JSON object, found " + std::string(kind_of(*parsed)) + ".");
  }
  return std::move(*parsed);
}

}  // namespace redline::api
