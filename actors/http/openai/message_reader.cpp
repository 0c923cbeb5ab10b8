#include "actors/http/openai/message_reader.hpp"

#include <algorithm>
#include <iterator>

namespace redline::api {

std::string indexed(std::string_view name, std::size_t index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

std::string read_text_parts(field_reader& fields, std::string_view name, const json& parts, std::string_view separator,
                            const request_limits& limits, std::optional<api_error>& error) {
  std::string text;
  if (parts.size() > limits.parts_max) {
    fields.refuse(name, "'" + fields.path_of(name) + "' has more than " + std::to_string(limits.parts_max) + " parts.");
  }
  for (std::size_t i = 0; i < parts.size() && !error; ++i) {
    const std::string at = indexed(name, i);
    if (!parts[i].is_object()) {
      fields.refuse_type(at, "an object", parts[i]);
      break;
    }
    field_reader part(parts[i], fields.path_of(at), error);
    const auto type = part.text("type", limits.name_bytes_max);
    if (type != "text") {
      fields.refuse(at, "'" + fields.path_of(at) + "' must be a text part: only text is supported.",
                    "unsupported_parameter");
      break;
    }
    const auto piece = part.text("text", limits.text_bytes_max);
    if (!piece) part.refuse("text", "'" + part.path_of("text") + "' is required.");
    if (i > 0) text.append(separator);
    if (piece) text.append(*piece);
  }
  return text;
}

json message_reader::read(field_reader& request) {
  json messages = json::array();
  const json* list = request.array("messages", limits_.messages_max);
  if (!list) {
    request.refuse("messages", "'messages' is required.");
    return messages;
  }
  if (list->empty()) request.refuse("messages", "'messages' must not be empty.");
  for (std::size_t i = 0; i < list->size() && !error_; ++i) {
    const std::string path = indexed("messages", i);
    if ((*list)[i].is_object()) {
      messages.push_back(read_message((*list)[i], path));
    } else {
      request.refuse_type(path, "an object", (*list)[i]);
    }
  }
  return messages;
}

json message_reader::read_message(const json& given, const std::string& path) {
  field_reader fields(given, path, error_);
  json message = json::object();
  message["role"] = read_role(fields);
  for (const auto* name : {"tool_calls", "function_call", "audio"}) {
    const json* value = fields.find(name);
    if (value && !(value->is_array() && value->empty())) {
      fields.refuse(name, "'" + fields.path_of(name) + "' is not supported.", "unsupported_parameter");
    }
  }
  message["content"] = read_content(fields);
  if (auto name = fields.text("name", limits_.name_bytes_max)) message["name"] = std::move(*name);
  return message;
}

std::string message_reader::read_role(field_reader& fields) {
  static constexpr std::string_view roles[] = {"system", "developer", "user", "assistant"};
  const auto role = fields.text("role", limits_.name_bytes_max);
  if (!role) {
    fields.refuse("role", "'" + fields.path_of("role") + "' is required.");
    return {};
  }
  if (*role == "developer") return "system";
  if (*role == "tool" || *role == "function") {
    fields.refuse("role", "Messages of role '" + *role + "' are not supported.", "unsupported_parameter");
  } else if (std::find(std::begin(roles), std::end(roles), *role) == std::end(roles)) {
    fields.refuse("role", "'" + fields.path_of("role") +
                              "' must be one of system, developer, user and assistant, found '" + role->substr(0, 64) +
                              "'.");
  }
  return *role;
}

std::string message_reader::read_content(field_reader& fields) {
  const json* content = fields.find("content");
  if (!content) {
    fields.refuse("content", "'" + fields.path_of("content") + "' is required.");
    return {};
  }
  std::string text;
  if (content->is_string()) {
    text = content->get_ref<const std::string&>();
  } else if (content->is_array()) {
    text = read_text_parts(fields, "content", *content, "\n", limits_, error_);
  } else {
    fields.refuse_type("content", "a string or an array of text parts", *content);
  }
  text_bytes_ += text.size();
  if (text_bytes_ > limits_.text_bytes_max) {
    fields.refuse("content", "The messages have more than " + std::to_string(limits_.text_bytes_max) + " bytes.");
  }
  return text;
}

}  // namespace redline::api
