#include "actors/http/shapes/openai/translation.hpp"

#include <algorithm>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/openai/request.hpp"

namespace redline::api {

void copy_members(const json& from, json& to, std::initializer_list<renamed_member> names) {
  for (const auto& one : names) {
    const auto at = from.find(one.theirs);
    if (at != from.end() && !at->is_null()) to[std::string(one.ours)] = *at;
  }
}

void copy_our_members(const json& from, json& to) {
  copy_members(from, to, {{"redline", "redline"}, {"prediction", "prediction"}, {"cache_salt", "cache_salt"}});
}

std::string read_texts(field_reader& fields, std::string_view name, std::initializer_list<std::string_view> types,
                       std::initializer_list<std::string_view> skipped, std::string_view separator,
                       std::optional<api_error>& error) {
  const json* given = fields.find(name);
  if (given == nullptr) return {};
  if (given->is_string()) return given->get<std::string>();
  if (!given->is_array()) {
    fields.refuse_type(name, "a string or an array of text parts", *given);
    return {};
  }
  const auto is_one_of = [](const std::string& type, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), type) != list.end();
  };
  const request_limits limits;
  std::string all;
  bool is_first = true;
  for (std::size_t i = 0; i < given->size() && !error; ++i) {
    const json& part = (*given)[i];
    const std::string at = indexed(name, i);
    if (!part.is_object()) {
      fields.refuse_type(at, "an object", part);
      break;
    }
    field_reader inner(part, fields.path_of(at), error);
    const auto type = inner.text("type", limits.name_bytes_max).value_or("");
    if (is_one_of(type, skipped)) continue;
    if (!is_one_of(type, types)) {
      inner.refuse("type",
                   "'" + inner.path_of("type") + "' is '" + type.substr(0, 64) + "': only text is supported here.",
                   "unsupported_parameter");
      break;
    }
    const auto text = inner.text("text", limits.text_bytes_max);
    if (!text) inner.refuse("text", "'" + inner.path_of("text") + "' is required.");
    if (!std::exchange(is_first, false)) all += separator;
    all += text.value_or("");
  }
  return all;
}

checked<generation_request> read_translated(const json& body, std::shared_ptr<const answer_shape> shape,
                                            std::initializer_list<renamed_member> names, const request_limits& limits,
                                            endpoint from) {
  auto out = read_generation(body, from, true, limits);
  if (!out) {
    api_error why = out.error();
    for (const auto& one : names) {
      const bool is_it = why.param == one.ours || why.param.starts_with(std::string(one.ours) + ".") ||
                         why.param.starts_with(std::string(one.ours) + "[");
      if (!is_it) continue;
      const auto quoted = "'" + std::string(one.ours);
      if (const auto at = why.message.find(quoted); at != std::string::npos) {
        why.message.replace(at + 1, one.ours.size(), one.theirs);
      }
      why.param.replace(0, one.ours.size(), one.theirs);
      break;
    }
    return why;
  }
  out->shape = std::move(shape);
  return out;
}

}  // namespace redline::api
