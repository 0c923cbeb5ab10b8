#include "actors/http/shapes/ollama/ollama_request.hpp"

#include <limits>
#include <utility>

#include "actors/http/fields/field_reader.hpp"
#include "actors/http/shapes/ollama/ollama_response.hpp"
#include "actors/http/shapes/openai/translation.hpp"

namespace redline::ollama {
namespace {

using api::api_error, api::field_reader, api::json;

const api::request_limits usual;
constexpr std::string_view latest = ":latest";

/// Ollama's sampling defaults, for requests and model files without any.
constexpr double temperature_default = 0.8, top_p_default = 0.9;
constexpr int top_k_default = 40;

json message_of(const std::string& role, std::string content) {
  json message;
  message["role"] = role;
  message["content"] = std::move(content);
  return message;
}

void refuse_images(field_reader& fields) {
  const json* images = fields.find("images");
  if (images == nullptr || (images->is_array() && images->empty())) return;
  fields.refuse("images", "'" + fields.path_of("images") + "' is not supported: this server's models read text.",
                "unsupported_parameter");
}

/// Ollama's calls have no ids, and their arguments are objects.
json calls_of(const json& given, std::size_t message) {
  json calls = json::array();
  for (std::size_t i = 0; i < given.size() && i < usual.parts_max; ++i) {
    json call = given[i];
    if (call.is_object()) {
      if (!call.contains("id")) call["id"] = "call_" + std::to_string(message) + "_" + std::to_string(i);
      call["type"] = "function";
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

void add_messages(field_reader& request, json& messages, std::optional<api_error>& error) {
  const json* list = request.array("messages", usual.messages_max);
  if (list == nullptr) return request.refuse("messages", "'messages' is required.");
  json open_ids = json::array();  // ids of calls without a result; results keep the order
  for (std::size_t i = 0; i < list->size() && !error; ++i) {
    const std::string at = api::indexed("messages", i);
    if (!(*list)[i].is_object()) return request.refuse_type(at, "an object", (*list)[i]);
    field_reader fields((*list)[i], at, error);
    refuse_images(fields);
    const auto role = fields.text("role", usual.name_bytes_max).value_or("");
    json message = message_of(role, fields.text("content", usual.text_bytes_max).value_or(""));
    if (const json* calls = fields.array("tool_calls", usual.parts_max); calls != nullptr && !calls->empty()) {
      message["tool_calls"] = calls_of(*calls, i);
      if (message["content"] == "") message["content"] = nullptr;
      open_ids = json::array();
      for (const auto& one : message["tool_calls"]) {
        if (one.is_object()) open_ids.push_back(one["id"]);
      }
    } else if (role == "tool") {
      auto id = fields.text("tool_call_id", usual.name_bytes_max);
      if (!id && !open_ids.empty() && open_ids[0].is_string()) {
        id = open_ids[0].get<std::string>();
        open_ids.erase(0);
      }
      message["tool_call_id"] = id.value_or("");
    }
    messages.push_back(std::move(message));
  }
}

void add_options(field_reader& request, json& out, const api::request_limits& limits, std::optional<api_error>& error) {
  static const json none = json::object();
  const json* given = request.object("options");
  const json& options = given != nullptr ? *given : none;
  field_reader fields(options, "options", error);
  const std::string model = out["model"];
  const auto own = limits.sampling_of ? limits.sampling_of(model) : sampling::sampling_defaults{};
  if (!own.temperature) out["temperature"] = temperature_default;
  if (!own.top_p) out["top_p"] = top_p_default;
  if (!own.top_k) out["top_k"] = top_k_default;
  api::copy_members(options, out,
                    {{"temperature", "temperature"},
                     {"top_p", "top_p"},
                     {"top_k", "top_k"},
                     {"min_p", "min_p"},
                     {"seed", "seed"},
                     {"stop", "stop"},
                     {"repeat_penalty", "repeat_penalty"},
                     {"presence_penalty", "presence_penalty"},
                     {"frequency_penalty", "frequency_penalty"}});
  // A negative count means the rest of the context.
  if (const auto count = fields.integer("num_predict", -2, std::numeric_limits<std::int32_t>::max());
      count && *count > 0) {
    out["max_tokens"] = *count;
  }
}

/// A request without a prompt asks for the model to be loaded, which it is. Computes one token and returns no text.
void add_nothing(json& out, json& messages) {
  messages = json::array({message_of("user", "")});
  out["max_tokens"] = 1;
}

/// Reads "json" or a schema.
void add_format(field_reader& request, json& out) {
  const json* format = request.find("format");
  if (format == nullptr || *format == "") return;
  if (*format == "json") {
    out["response_format"]["type"] = "json_object";
  } else if (format->is_object()) {
    out["response_format"]["type"] = "json_schema";
    out["response_format"]["json_schema"]["name"] = "answer";
    out["response_format"]["json_schema"]["schema"] = *format;
  } else {
    request.refuse("format", "'format' must be \"json\" or a JSON schema.");
  }
}

/// Reads the members that both kinds of requests have.
json read_common(field_reader& fields, const json& body, const api::request_limits& limits,
                 std::optional<api_error>& error) {
  json out;
  out["model"] = without_latest(fields.text("model", usual.name_bytes_max).value_or(""));
  if (out["model"] == "") fields.refuse("model", "'model' is required.");
  out["stream"] = fields.boolean("stream").value_or(true);
  add_options(fields, out, limits, error);
  add_format(fields, out);
  if (const auto thinks = fields.boolean("think")) out["chat_template_kwargs"]["enable_thinking"] = *thinks;
  api::copy_our_members(body, out);
  return out;
}

}  // namespace

api::checked<api::generation_request> parse_chat(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  json out = read_common(fields, *parsed, limits, error);
  json messages = json::array();
  add_messages(fields, messages, error);
  const bool only_loads = messages.empty();
  if (only_loads) add_nothing(out, messages);
  out["messages"] = std::move(messages);
  api::copy_members(*parsed, out, {{"tools", "tools"}});
  if (error) return std::move(*error);
  return api::read_translated(out, std::make_shared<answer_shape>(true, only_loads),
                              {{"options.num_predict", "max_tokens"}}, limits);
}

api::checked<api::generation_request> parse_generate(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  refuse_images(fields);
  json out = read_common(fields, *parsed, limits, error);
  auto prompt = fields.text("prompt", usual.text_bytes_max).value_or("");
  const auto suffix = fields.text("suffix", usual.text_bytes_max).value_or("");
  const bool only_loads = prompt.empty() && suffix.empty();
  const bool is_raw = !only_loads && (fields.boolean("raw").value_or(false) || !suffix.empty());
  if (is_raw) {
    out["prompt"] = std::move(prompt);
    if (!suffix.empty()) out["suffix"] = suffix;
    if (!out.contains("max_tokens")) out["max_tokens"] = std::numeric_limits<std::int32_t>::max();
  } else if (only_loads) {
    add_nothing(out, out["messages"]);
  } else {
    json messages = json::array();
    if (auto system = fields.text("system", usual.text_bytes_max)) {
      messages.push_back(message_of("system", std::move(*system)));
    }
    messages.push_back(message_of("user", std::move(prompt)));
    out["messages"] = std::move(messages);
  }
  if (error) return std::move(*error);
  return api::read_translated(out, std::make_shared<answer_shape>(false, only_loads),
                              {{"options.num_predict", "max_tokens"}}, limits,
                              is_raw ? api::endpoint::completions : api::endpoint::chat);
}

api::checked<std::string> parse_show(std::string_view body) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  auto name = fields.text("model", usual.name_bytes_max);
  if (!name) name = fields.text("name", usual.name_bytes_max);
  if (!name) fields.refuse("model", "'model' is required.");
  if (error) return std::move(*error);
  return without_latest(std::move(*name));
}

std::string without_latest(std::string name) {
  if (name.ends_with(latest)) name.resize(name.size() - latest.size());
  return name;
}

}  // namespace redline::ollama
