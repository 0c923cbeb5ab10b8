#include "actors/http/shapes/openai/message_reader.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "actors/http/shapes/openai/tool_fields.hpp"

namespace redline::api {

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
  const std::string role = read_role(fields);
  message["role"] = role == "function" ? "tool" : role;
  const json* audio = fields.find("audio");
  if (audio && !(audio->is_structured() && audio->empty())) {
    fields.refuse("audio", "'" + fields.path_of("audio") + "' is not supported.", "unsupported_parameter");
  }
  json calls = read_calls(fields);
  if (!calls.empty() && role != "assistant") {
    fields.refuse("tool_calls", "'" + fields.path_of("tool_calls") + "' may only be in messages of role assistant.");
  }
  auto content = read_content(fields);
  if (!content && role == "tool") content.emplace();
  if (!content && calls.empty()) {
    fields.refuse("content", "'" + fields.path_of("content") + "' is required" +
                                 (role == "assistant" ? " in a message without tool_calls." : "."));
  }
  message["content"] = content ? json(std::move(*content)) : json(nullptr);
  // OpenRouter and newer vLLM use the second name.
  for (const char* const name : {"reasoning_content", "reasoning"}) {
    auto reasoning = fields.text(name, limits_.text_bytes_max);
    if (!reasoning || message.contains("reasoning_content")) continue;
    count_bytes(fields, name, reasoning->size());
    message["reasoning_content"] = std::move(*reasoning);
  }
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  if (auto name = fields.text("name", limits_.name_bytes_max)) message["name"] = std::move(*name);
  if (role == "tool") {
    if (auto id = fields.text("tool_call_id", limits_.name_bytes_max)) message["tool_call_id"] = std::move(*id);
  } else if (role == "function") {
    message["tool_call_id"] = legacy_call_;
  }
  return message;
}

/// An assistant's tool_calls, or the older single function_call.
json message_reader::read_calls(field_reader& fields) {
  json calls = json::array();
  const json* list = fields.array("tool_calls", limits_.tools_max);
  for (std::size_t i = 0; list && i < list->size() && !error_; ++i) {
    const std::string at = indexed("tool_calls", i);
    if (!(*list)[i].is_object()) {
      fields.refuse_type(at, "an object", (*list)[i]);
      break;
    }
    field_reader entry((*list)[i], fields.path_of(at), error_);
    const auto type = entry.text("type", limits_.name_bytes_max);
    if (type && *type != "function") {
      entry.refuse("type", "'" + entry.path_of("type") + "' must be function.", "unsupported_parameter");
      break;
    }
    const json* function = entry.object("function");
    if (!function) {
      entry.refuse("function", "'" + entry.path_of("function") + "' is required.");
      break;
    }
    field_reader inner(*function, entry.path_of("function"), error_);
    calls.push_back(read_call(inner, entry.text("id", limits_.name_bytes_max).value_or("")));
  }
  if (const json* call = fields.object("function_call"); call && calls.empty()) {
    legacy_call_ = "call_of_" + fields.path_of("function_call");
    field_reader inner(*call, fields.path_of("function_call"), error_);
    calls.push_back(read_call(inner, legacy_call_));
  }
  return calls;
}

/// Reads {"name", "arguments"}. Arguments are text, or the object that OpenAI would write as text. Text that is not
/// valid JSON is kept: a model wrote it and must see it.
json message_reader::read_call(field_reader& function, const std::string& id) {
  json inner;
  inner["name"] = read_tool_name(function, limits_).value_or("");
  std::string arguments = "{}";
  if (const json* given = function.find("arguments")) {
    if (given->is_object()) {
      arguments = dump_json(*given);
    } else if (!given->is_string()) {
      function.refuse_type("arguments", "a string of JSON", *given);
    } else if (!given->get_ref<const std::string&>().empty()) {
      arguments = given->get_ref<const std::string&>();
    }
  }
  count_bytes(function, "arguments", arguments.size());
  inner["arguments"] = std::move(arguments);
  json call;
  call["id"] = id;
  call["type"] = "function";
  call["function"] = std::move(inner);
  return call;
}

std::string message_reader::read_role(field_reader& fields) {
  static constexpr std::string_view roles[] = {"system", "developer", "user", "assistant", "tool", "function"};
  const auto role = fields.text("role", limits_.name_bytes_max);
  if (!role) {
    fields.refuse("role", "'" + fields.path_of("role") + "' is required.");
    return {};
  }
  if (*role == "developer") return "system";
  if (std::find(std::begin(roles), std::end(roles), *role) == std::end(roles)) {
    fields.refuse("role", "'" + fields.path_of("role") +
                              "' must be one of system, developer, user, assistant and tool, found '" +
                              role->substr(0, 64) + "'.");
  }
  return *role;
}

/// nullopt if absent or null.
std::optional<std::string> message_reader::read_content(field_reader& fields) {
  const json* content = fields.find("content");
  if (!content) return std::nullopt;
  std::string text;
  if (content->is_string()) {
    text = content->get_ref<const std::string&>();
  } else if (content->is_array()) {
    text = read_text_parts(fields, "content", *content, "\n", limits_, error_);
  } else {
    fields.refuse_type("content", "a string or an array of text parts", *content);
  }
  count_bytes(fields, "content", text.size());
  return text;
}

void message_reader::count_bytes(field_reader& fields, std::string_view name, std::size_t bytes) {
  text_bytes_ += bytes;
  if (text_bytes_ > limits_.text_bytes_max) {
    fields.refuse(name, "The messages have more than " + std::to_string(limits_.text_bytes_max) + " bytes.");
  }
}

}  // namespace redline::api
