#include "actors/http/shapes/responses/responses_request.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/openai/translation.hpp"
#include "actors/http/shapes/responses/responses_response.hpp"

namespace redline::responses {
namespace {

using api::api_error, api::field_reader, api::json;

const api::request_limits usual;

// OpenAI's limits.
constexpr std::size_t metadata_pairs_max = 16;
constexpr std::size_t metadata_key_characters_max = 64;
constexpr std::size_t metadata_value_characters_max = 512;

/// Limit of instructions, tools and all else that each response repeats. A stream repeats it three times.
constexpr std::size_t repeated_bytes_max = 1 << 20;

/// Items of tools that OpenAI's servers run. The model is not shown them.
constexpr std::string_view skipped_items[] = {"web_search_call",
                                              "file_search_call",
                                              "computer_call",
                                              "computer_call_output",
                                              "code_interpreter_call",
                                              "image_generation_call",
                                              "local_shell_call",
                                              "local_shell_call_output",
                                              "shell_call",
                                              "shell_call_output",
                                              "mcp_call",
                                              "mcp_list_tools",
                                              "mcp_approval_request",
                                              "mcp_approval_response",
                                              "custom_tool_call",
                                              "custom_tool_call_output",
                                              "apply_patch_call",
                                              "apply_patch_call_output",
                                              "compaction"};

class item_reader {
 public:
  item_reader(json& messages, std::optional<api_error>& error) : messages_(messages), error_(error) {}

  void read(field_reader& item) {
    const auto type = item.text("type", usual.name_bytes_max).value_or("message");
    if (type == "message") return add_message(item);
    if (type == "function_call") return add_call(item);
    if (type == "function_call_output") return add_output(item);
    if (type == "reasoning") return add_thoughts(item);
    if (std::find(std::begin(skipped_items), std::end(skipped_items), type) != std::end(skipped_items)) return;
    if (type == "item_reference") {
      return item.refuse("type",
                         "'" + item.path_of("type") +
                             "' is 'item_reference', but this server stores no items: send the item itself, as clients "
                             "do with 'store': false.",
                         "unsupported_parameter");
    }
    item.refuse("type",
                "'" + item.path_of("type") + "' is '" + type.substr(0, 64) +
                    "'; expected message, function_call, function_call_output or reasoning.",
                "unsupported_parameter");
  }

 private:
  void add_message(field_reader& item) {
    json message;
    const auto role = item.text("role", usual.name_bytes_max);
    if (!role) return item.refuse("role", "'" + item.path_of("role") + "' is required.");
    if (item.find("content") == nullptr) {
      return item.refuse("content", "'" + item.path_of("content") + "' is required.");
    }
    message["role"] = *role;
    if (*role == "assistant") give_thoughts(message);
    message["content"] = api::read_texts(item, "content", {"input_text", "output_text", "text", "summary_text"},
                                         {"refusal"}, "\n", error_);
    messages_.push_back(std::move(message));
  }
  /// The calls of one answer are one message, with the text before them.
  void add_call(field_reader& item) {
    json call;
    call["id"] = item.text("call_id", usual.name_bytes_max).value_or("");
    call["type"] = "function";
    call["function"]["name"] = item.text("name", usual.name_bytes_max).value_or("");
    call["function"]["arguments"] = item.text("arguments", usual.text_bytes_max).value_or("{}");
    if (messages_.empty() || messages_.back()["role"] != "assistant") {
      json message;
      message["role"] = "assistant";
      message["content"] = nullptr;
      messages_.push_back(std::move(message));
    }
    give_thoughts(messages_.back());
    messages_.back()["tool_calls"].push_back(std::move(call));
  }
  void add_output(field_reader& item) {
    json message;
    message["role"] = "tool";
    message["tool_call_id"] = item.text("call_id", usual.name_bytes_max).value_or("");
    if (item.find("output") == nullptr) return item.refuse("output", "'" + item.path_of("output") + "' is required.");
    message["content"] = api::read_texts(item, "output", {"input_text", "output_text", "text"}, {}, "\n", error_);
    messages_.push_back(std::move(message));
  }

  /// Reasoning belongs to the next message or call. Its summary is used if a server keeps the reasoning to itself.
  void add_thoughts(field_reader& item) {
    for (const char* name : {"content", "summary"}) {
      if (item.find(name) == nullptr) continue;
      auto text = api::read_texts(item, name, {"reasoning_text", "summary_text", "text"}, {}, "\n", error_);
      if (!text.empty()) {
        thoughts_ += (thoughts_.empty() ? "" : "\n") + text;
        return;
      }
    }
  }
  void give_thoughts(json& message) {
    if (thoughts_.empty()) return;
    const auto known = message.find("reasoning_content");
    message["reasoning_content"] = known == message.end() ? thoughts_ : known->get<std::string>() + "\n" + thoughts_;
    thoughts_.clear();
  }

  json& messages_;
  std::optional<api_error>& error_;
  std::string thoughts_;  // for the next message or call
};

void add_input(field_reader& request, json& messages, std::optional<api_error>& error) {
  const json* input = request.find("input");
  if (input != nullptr && input->is_string()) {
    json message;
    message["role"] = "user";
    message["content"] = *input;
    messages.push_back(std::move(message));
  } else if (input != nullptr) {
    const json* list = request.array("input", usual.messages_max);
    item_reader reader(messages, error);
    for (std::size_t i = 0; list != nullptr && i < list->size() && !error; ++i) {
      const std::string at = api::indexed("input", i);
      if (!(*list)[i].is_object()) return request.refuse_type(at, "an object", (*list)[i]);
      field_reader item((*list)[i], at, error);
      reader.read(item);
    }
  }
  // Clients send an empty input to test whether a model exists.
  if (messages.empty()) messages.push_back(json{{"role", "user"}, {"content", ""}});
}

/// The functions among the tools, in the form of chat requests.
json read_functions(field_reader& request, std::optional<api_error>& error) {
  constexpr std::size_t tools_max = 256;
  json tools = json::array();
  const json* list = request.array("tools", tools_max);
  for (std::size_t i = 0; list != nullptr && i < list->size() && !error; ++i) {
    const std::string at = api::indexed("tools", i);
    if (!(*list)[i].is_object()) {
      request.refuse_type(at, "an object", (*list)[i]);
      break;
    }
    field_reader tool((*list)[i], at, error);
    if (tool.text("type", usual.name_bytes_max).value_or("") != "function") continue;
    json function;
    api::copy_members(
        (*list)[i], function,
        {{"name", "name"}, {"description", "description"}, {"parameters", "parameters"}, {"strict", "strict"}});
    tools.push_back(json{{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

void add_tools(field_reader& request, json& out, std::optional<api_error>& error) {
  json tools = read_functions(request, error);
  if (tools.empty()) return;
  out["tools"] = std::move(tools);
  const json* choice = request.find("tool_choice");
  if (choice == nullptr) return;
  if (choice->is_string()) {
    out["tool_choice"] = *choice;
    return;
  }
  const json* named = request.object("tool_choice");
  if (named == nullptr) return;
  field_reader fields(*named, "tool_choice", error);
  const auto type = fields.text("type", usual.name_bytes_max).value_or("");
  if (type == "function") {
    out["tool_choice"]["type"] = "function";
    out["tool_choice"]["function"]["name"] = fields.text("name", usual.name_bytes_max).value_or("");
  } else if (type == "allowed_tools") {
    out["tool_choice"] = fields.text("mode", usual.name_bytes_max).value_or("auto");
  } else {
    fields.refuse("type", "'tool_choice.type' must be function or allowed_tools.", "unsupported_parameter");
  }
}

void add_format(field_reader& request, json& out, std::optional<api_error>& error) {
  const json* text = request.object("text");
  if (text == nullptr) return;
  field_reader fields(*text, "text", error);
  const json* format = fields.object("format");
  if (format == nullptr) return;
  field_reader inner(*format, "text.format", error);
  const auto type = inner.text("type", usual.name_bytes_max).value_or("");
  out["response_format"]["type"] = type;
  if (type != "json_schema") return;
  json schema;
  api::copy_members(*format, schema,
                    {{"name", "name"}, {"description", "description"}, {"schema", "schema"}, {"strict", "strict"}});
  out["response_format"]["json_schema"] = std::move(schema);
}

/// Reads `include`, which requests log-probabilities by name. Its other names refer to data that does not exist here.
void add_logprobs(field_reader& request, json& out) {
  constexpr std::size_t includes_max = 64;
  const json* names = request.array("include", includes_max);
  const auto top = request.integer("top_logprobs", 0, usual.top_logprobs_max).value_or(0);
  if (names != nullptr && std::find(names->begin(), names->end(), "message.output_text.logprobs") != names->end()) {
    out["logprobs"] = true;
    out["top_logprobs"] = top;
  } else if (top > 0) {
    request.refuse("top_logprobs", "'top_logprobs' needs 'message.output_text.logprobs' in 'include'.");
  }
}

/// Refuses fields that refer to stored state.
void refuse_memory(field_reader& request) {
  if (request.find("previous_response_id") != nullptr) {
    request.refuse("previous_response_id",
                   "This server stores no responses, so there is no previous one: leave 'previous_response_id' out and "
                   "send the whole conversation as 'input'.",
                   "previous_response_not_found");
  }
  for (const auto* name : {"conversation", "prompt"}) {
    if (request.find(name) == nullptr) continue;
    request.refuse(name,
                   "This server stores nothing that '" + std::string(name) +
                       "' could refer to: send the whole conversation as 'input'.",
                   "unsupported_parameter");
  }
  if (request.boolean("background").value_or(false)) {
    request.refuse(
        "background",
        "This server stores no responses, so it cannot compute one in the background: leave 'background' out.",
        "unsupported_parameter");
  }
}

/// Counts UTF-8 characters, not bytes.
std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

void check_metadata(field_reader& request) {
  const json* given = request.object("metadata");
  if (given == nullptr) return;
  if (given->size() > metadata_pairs_max) {
    return request.refuse("metadata", "'metadata' has " + std::to_string(given->size()) + " pairs; at most " +
                                          std::to_string(metadata_pairs_max) + " are allowed.");
  }
  for (const auto& [key, value] : given->get_ref<const json::object_t&>()) {
    if (count_characters(key) > metadata_key_characters_max) {
      return request.refuse("metadata", "A key of 'metadata' has more than " +
                                            std::to_string(metadata_key_characters_max) + " characters.");
    }
    const std::string name = "metadata." + key;
    if (!value.is_string()) return request.refuse_type(name, "a string", value);
    if (count_characters(value.get_ref<const std::string&>()) > metadata_value_characters_max) {
      return request.refuse(
          name, "'" + name + "' has more than " + std::to_string(metadata_value_characters_max) + " characters.");
    }
  }
}

/// Checks the fields that responses repeat and that nothing else here reads.
void check_repeated(field_reader& request, std::optional<api_error>& error) {
  check_metadata(request);
  static_cast<void>(request.boolean("parallel_tool_calls"));
  static_cast<void>(request.integer("max_tool_calls", 1, std::numeric_limits<std::int32_t>::max()));
  if (const json* reasoning = request.object("reasoning")) {
    field_reader fields(*reasoning, "reasoning", error);
    for (const auto* name : {"effort", "summary", "generate_summary"}) {
      static_cast<void>(fields.text(name, usual.name_bytes_max));
    }
  }
  if (const json* text = request.object("text")) {
    field_reader fields(*text, "text", error);
    static_cast<void>(fields.text("verbosity", usual.name_bytes_max));
  }
  const json* choice = request.find("tool_choice");
  if (choice != nullptr && !choice->is_object()) static_cast<void>(request.text("tool_choice", usual.name_bytes_max));
}

}  // namespace

api::checked<api::generation_request> parse_responses(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  refuse_memory(fields);
  check_repeated(fields, error);
  json out;
  json messages = json::array();
  if (auto instructions = fields.text("instructions", usual.text_bytes_max)) {
    messages.push_back(json{{"role", "system"}, {"content", std::move(*instructions)}});
  }
  add_input(fields, messages, error);
  out["messages"] = std::move(messages);
  add_tools(fields, out, error);
  add_format(fields, out, error);
  add_logprobs(fields, out);
  api::copy_members(*parsed, out,
                    {{"model", "model"},
                     {"max_output_tokens", "max_completion_tokens"},
                     {"stream", "stream"},
                     {"temperature", "temperature"},
                     {"top_p", "top_p"},
                     {"seed", "seed"},
                     {"parallel_tool_calls", "parallel_tool_calls"},
                     {"metadata", "metadata"},
                     {"user", "user"},
                     {"safety_identifier", "safety_identifier"},
                     {"prompt_cache_key", "prompt_cache_key"}});
  if (const json* reasoning = fields.object("reasoning")) {
    api::copy_members(*reasoning, out, {{"effort", "reasoning_effort"}});
  }
  api::copy_our_members(*parsed, out);
  if (error) return std::move(*error);
  auto shape = std::make_shared<response_shape>(*parsed);
  if (shape->repeated_bytes() > repeated_bytes_max) {
    return api::bad_field("instructions",
                          "Responses repeat 'instructions', 'tools', 'text' and other members of the "
                          "request; together they have " +
                              std::to_string(shape->repeated_bytes()) + " bytes, more than the " +
                              std::to_string(repeated_bytes_max) +
                              " allowed. Send long instructions as a message of 'input'.");
  }
  return api::read_translated(out, std::move(shape),
                              {{"max_output_tokens", "max_completion_tokens"},
                               {"text.format", "response_format"},
                               {"input", "messages"},
                               {"include", "logprobs"}},
                              limits);
}

}  // namespace redline::responses
