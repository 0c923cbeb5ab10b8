#include "actors/http/shapes/anthropic/messages_request.hpp"

#include <memory>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/anthropic/messages_response.hpp"
#include "actors/http/shapes/openai/translation.hpp"

namespace redline::anthropic {
namespace {

using api::api_error, api::field_reader, api::json;

const api::request_limits usual;

json message_of(std::string role, std::string content) {
  json message;
  message["role"] = std::move(role);
  message["content"] = std::move(content);
  return message;
}

/// Converts the blocks of one message to one or several messages in OpenAI's form.
class block_reader {
 public:
  block_reader(std::string role, json& messages, std::optional<api_error>& error)
      : role_(std::move(role)), messages_(messages), error_(error) {}

  void read(field_reader& block) {
    const auto type = block.text("type", usual.name_bytes_max).value_or("");
    if (type == "text") return add_text(block);
    if (type == "thinking" && role_ == "assistant") return add_thoughts(block);
    if (type == "thinking" || type == "redacted_thinking") return;
    if (type == "tool_use" && role_ == "assistant") return add_call(block);
    if (type == "tool_result" && role_ == "user") return add_result(block);
    block.refuse("type",
                 "'" + block.path_of("type") + "' is '" + type.substr(0, 64) +
                     "', which is not supported in a message of role " + role_ +
                     ": expected text, tool_use or tool_result.",
                 "unsupported_parameter");
  }

  void flush() {
    if (!has_text_ && calls_.empty() && thoughts_.empty()) return;
    json message = message_of(role_, std::move(text_));
    if (!thoughts_.empty()) message["reasoning_content"] = std::move(thoughts_);
    if (!calls_.empty()) {
      if (!has_text_) message["content"] = nullptr;
      message["tool_calls"] = std::move(calls_);
    }
    messages_.push_back(std::move(message));
    text_.clear();
    thoughts_.clear();
    calls_ = json::array();
    has_text_ = false;
  }

 private:
  void add_text(field_reader& block) {
    const auto text = block.text("text", usual.text_bytes_max);
    if (!text) return block.refuse("text", "'" + block.path_of("text") + "' is required.");
    if (std::exchange(has_text_, true)) text_ += "\n";
    text_ += *text;
  }
  void add_thoughts(field_reader& block) {
    const auto text = block.text("thinking", usual.text_bytes_max);
    if (!text) return block.refuse("thinking", "'" + block.path_of("thinking") + "' is required.");
    if (!thoughts_.empty()) thoughts_ += "\n";
    thoughts_ += *text;
  }
  void add_call(field_reader& block) {
    json call;
    call["id"] = block.text("id", usual.name_bytes_max).value_or("");
    call["type"] = "function";
    call["function"]["name"] = block.text("name", usual.name_bytes_max).value_or("");
    const json* input = block.object("input");
    call["function"]["arguments"] = input != nullptr ? dump_json(*input) : "{}";
    calls_.push_back(std::move(call));
  }
  /// A result is a message of its own; the user's text next to it follows.
  void add_result(field_reader& block) {
    flush();
    json message = message_of("tool", api::read_texts(block, "content", {"text"}, {}, "\n", error_));
    message["tool_call_id"] = block.text("tool_use_id", usual.name_bytes_max).value_or("");
    if (block.boolean("is_error").value_or(false)) {
      message["content"] = "Error: " + message["content"].get<std::string>();
    }
    messages_.push_back(std::move(message));
  }

  const std::string role_;
  json& messages_;
  std::optional<api_error>& error_;
  std::string text_;
  std::string thoughts_;
  bool has_text_ = false;
  json calls_ = json::array();
};

void add_messages(field_reader& request, json& messages, std::optional<api_error>& error) {
  const json* list = request.array("messages", usual.messages_max);
  if (list == nullptr) return request.refuse("messages", "'messages' is required.");
  if (list->empty()) request.refuse("messages", "'messages' must not be empty.");
  for (std::size_t i = 0; i < list->size() && !error; ++i) {
    const std::string at = api::indexed("messages", i);
    if (!(*list)[i].is_object()) return request.refuse_type(at, "an object", (*list)[i]);
    field_reader message((*list)[i], at, error);
    const auto role = message.text("role", usual.name_bytes_max).value_or("");
    // An operator's system message in the middle of a conversation stays there.
    if (role != "user" && role != "assistant" && role != "system") {
      return message.refuse("role", "'" + at + ".role' must be user, assistant or system.");
    }
    const json* content = message.find("content");
    if (content != nullptr && content->is_string()) {
      messages.push_back(message_of(role, content->get<std::string>()));
      continue;
    }
    const json* blocks = message.array("content", usual.parts_max);
    if (blocks == nullptr) return message.refuse("content", "'" + at + ".content' is required.");
    block_reader reader(role, messages, error);
    for (std::size_t j = 0; j < blocks->size() && !error; ++j) {
      const std::string name = api::indexed("content", j);
      if (!(*blocks)[j].is_object()) return message.refuse_type(name, "an object", (*blocks)[j]);
      field_reader block((*blocks)[j], message.path_of(name), error);
      reader.read(block);
    }
    reader.flush();
  }
}

void add_tools(field_reader& request, json& out, std::optional<api_error>& error) {
  constexpr std::size_t tools_max = 256;
  const json* list = request.array("tools", tools_max);
  json tools = json::array();
  for (std::size_t i = 0; list != nullptr && i < list->size() && !error; ++i) {
    const std::string at = api::indexed("tools", i);
    if (!(*list)[i].is_object()) return request.refuse_type(at, "an object", (*list)[i]);
    field_reader tool((*list)[i], at, error);
    if (tool.text("type", usual.name_bytes_max).value_or("custom") != "custom") continue;  // run by Anthropic
    json function;
    api::copy_members((*list)[i], function,
                      {{"name", "name"}, {"description", "description"}, {"input_schema", "parameters"}});
    tools.push_back(json{{"type", "function"}, {"function", std::move(function)}});
  }
  if (tools.empty()) return;
  out["tools"] = std::move(tools);
  const json* choice = request.object("tool_choice");
  if (choice == nullptr) return;
  field_reader fields(*choice, "tool_choice", error);
  const auto type = fields.text("type", usual.name_bytes_max).value_or("");
  if (type == "auto" || type == "none") {
    out["tool_choice"] = type;
  } else if (type == "any") {
    out["tool_choice"] = "required";
  } else if (type == "tool") {
    out["tool_choice"]["type"] = "function";
    out["tool_choice"]["function"]["name"] = fields.text("name", usual.name_bytes_max).value_or("");
  } else {
    return fields.refuse("type", "'tool_choice.type' must be one of auto, any, tool and none.");
  }
  if (fields.boolean("disable_parallel_tool_use").value_or(false)) out["parallel_tool_calls"] = false;
}

api::checked<api::generation_request> parse(std::string_view body, bool is_answered,
                                            const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  if (!fields.find("model")) fields.refuse("model", "'model' is required.");
  if (is_answered && !fields.find("max_tokens")) fields.refuse("max_tokens", "'max_tokens' is required.");
  json out;
  json messages = json::array();
  if (auto system = api::read_texts(fields, "system", {"text"}, {}, "\n", error); !system.empty()) {
    messages.push_back(message_of("system", std::move(system)));
  }
  add_messages(fields, messages, error);
  // As in Anthropic's API, the answer continues a last message of the assistant.
  if (!messages.empty() && messages.back()["role"] == "assistant" && !messages.back().contains("tool_calls"))
    out["continue_final_message"] = true;
  out["messages"] = std::move(messages);
  add_tools(fields, out, error);
  api::copy_members(*parsed, out,
                    {{"model", "model"},
                     {"max_tokens", "max_tokens"},
                     {"stop_sequences", "stop"},
                     {"stream", "stream"},
                     {"temperature", "temperature"},
                     {"top_p", "top_p"},
                     {"top_k", "top_k"},
                     {"seed", "seed"}});
  const auto shape = std::make_shared<message_shape>();
  if (const json* thinking = fields.object("thinking")) {
    field_reader inner(*thinking, "thinking", error);
    const bool is_on = inner.text("type", usual.name_bytes_max).value_or("disabled") != "disabled";
    out["chat_template_kwargs"]["enable_thinking"] = is_on;
    shape->shows_thoughts = is_on && inner.text("display", usual.name_bytes_max).value_or("") != "omitted";
  }
  if (const json* about = fields.object("metadata")) api::copy_members(*about, out, {{"user_id", "user"}});
  api::copy_our_members(*parsed, out);
  if (error) return std::move(*error);
  return api::read_translated(out, shape, {{"stop_sequences", "stop"}}, limits);
}

}  // namespace

api::checked<api::generation_request> parse_messages(std::string_view body, const api::request_limits& limits) {
  return parse(body, true, limits);
}

api::checked<api::generation_request> parse_count(std::string_view body, const api::request_limits& limits) {
  return parse(body, false, limits);
}

}  // namespace redline::anthropic
