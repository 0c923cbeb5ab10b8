#include "actors/http/shapes/responses/responses_response.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "actors/http/request/answer_parts.hpp"
#include "actors/http/shapes/openai/response.hpp"

namespace redline::responses {
namespace {

using api::json;

json usage_of(const api::usage_report& usage) {
  json object;
  object["input_tokens"] = usage.prompt_tokens;
  object["input_tokens_details"] = json{{"cached_tokens", usage.cached_tokens}};
  object["output_tokens"] = usage.completion_tokens;
  object["output_tokens_details"] = json{{"reasoning_tokens", usage.reasoning_tokens}};
  object["total_tokens"] = std::uint64_t{usage.prompt_tokens} + usage.completion_tokens;
  return object;
}

json text_part(std::string text, json logprobs = json::array()) {
  json part;
  part["type"] = "output_text";
  part["annotations"] = json::array();
  part["logprobs"] = std::move(logprobs);
  part["text"] = std::move(text);
  return part;
}

json thought_part(std::string text) {
  json part;
  part["type"] = "reasoning_text";
  part["text"] = std::move(text);
  return part;
}

class response_writer final : public api::answer_writer {
 public:
  response_writer(const api::response_head& head, std::shared_ptr<const std::string> repeated)
      : head_(head), id_(head.id.substr(head.id.find('-') + 1)), repeated_(std::move(repeated)) {}

  std::string first(std::uint32_t /*index*/, std::span<const token> /*prompt*/) override {
    const auto response = whole_text(response_object("in_progress", json::array()));
    std::string events = response_event("response.created", sequence_++, response);
    return events += response_event("response.in_progress", sequence_++, response);
  }
  std::string delta(std::uint32_t /*index*/, std::string_view text, const std::vector<api::token_report>* tokens,
                    std::string_view reasoning) override {
    std::string events;
    if (tokens != nullptr && reasoning.empty()) add(token_logprobs(head_, *tokens), fresh_logprobs_);
    if (!reasoning.empty()) {
      events += open(item::thought);
      text_ += reasoning;
      events += event("response.reasoning_text.delta", of_part({{"delta", reasoning}}));
    }
    if (text.empty()) return events;
    events += open(item::message);
    text_ += text;
    const json fresh = std::exchange(fresh_logprobs_, json::array());
    add(fresh, logprobs_);
    return events += event("response.output_text.delta", of_part({{"delta", text}, {"logprobs", fresh}}));
  }
  std::string call(std::uint32_t /*index*/, std::uint32_t /*number*/, const tools::tool_call& begun,
                   bool /*is_legacy*/) override {
    std::string events = close_item();
    fresh_logprobs_ = json::array();  // a call's tokens have no field here
    call_ = begun;
    return events +=
           event("response.output_item.added",
                 {{"output_index", output_.size()}, {"item", call_object(*call_, output_.size(), "in_progress")}});
  }
  std::string arguments(std::uint32_t /*index*/, std::uint32_t /*number*/, std::string_view text,
                        bool /*is_legacy*/) override {
    if (!call_ || text.empty()) return {};
    call_->arguments += text;
    return event("response.function_call_arguments.delta",
                 {{"item_id", call_id(output_.size())}, {"output_index", output_.size()}, {"delta", text}});
  }
  std::string finish(const api::choice& one) override {
    finish_ = one.finish;
    std::string events;
    if (output_.empty() && !call_ && open_ == item::none) events += open(item::message);  // every answer has an item
    return events += close_item();
  }
  std::string end(const api::usage_report& usage) override {
    const bool is_cut = finish_ == api::finish_reason::length;
    json response = response_object(is_cut ? "incomplete" : "completed", output_);
    response["usage"] = usage_of(usage);
    return response_event(is_cut ? "response.incomplete" : "response.completed", sequence_++, whole_text(response));
  }
  [[nodiscard]] std::string error(const api::api_error& why) const override {
    json response = response_object("failed", output_);
    response["error"] = json{{"code", why.code.empty() ? "server_error" : why.code}, {"message", why.message}};
    return response_event("response.failed", sequence_, whole_text(response));
  }
  [[nodiscard]] std::string whole(std::span<const api::choice> choices, const api::usage_report& usage) const override {
    const auto& one = choices.front();
    const bool is_cut = one.finish == api::finish_reason::length;
    json output = json::array();
    const char* status = is_cut ? "incomplete" : "completed";
    if (!one.reasoning.empty()) {
      const bool is_last = one.text.empty() && one.calls.empty();
      output.push_back(thought_object(one.reasoning, 0, is_last ? status : "completed"));
    }
    if (!one.text.empty() || (one.calls.empty() && output.empty())) {
      std::span<const api::token_report> tokens;
      if (head_.shows_logprobs && one.tokens) tokens = *one.tokens;
      tokens = tokens.subspan(std::min<std::size_t>(usage.reasoning_tokens, tokens.size()));
      output.push_back(message_object(text_part(one.text, token_logprobs(head_, tokens)), output.size(), status));
    }
    for (const auto& call : one.calls) output.push_back(call_object(call, output.size(), status));
    json response = response_object(is_cut ? "incomplete" : "completed", std::move(output));
    if (is_cut) response["incomplete_details"] = json{{"reason", "max_output_tokens"}};
    response["usage"] = usage_of(usage);
    return whole_text(response);
  }

 private:
  /// The item's id, by its index among the items.
  [[nodiscard]] std::string item_id(const char* kind, std::size_t at) const {
    return kind + id_ + (at == 0 ? std::string() : "_" + std::to_string(at));
  }
  [[nodiscard]] std::string call_id(std::size_t at) const { return item_id("fc_", at); }
  [[nodiscard]] json call_object(const tools::tool_call& call, std::size_t at, const char* status) const {
    json out;
    out["id"] = call_id(at);
    out["type"] = "function_call";
    out["status"] = status;
    out["call_id"] = call.id;
    out["name"] = call.name;
    out["arguments"] = call.arguments;
    return out;
  }
  static void add(json from, json& to) {
    for (auto& one : from) to.push_back(std::move(one));
  }
  [[nodiscard]] json message_object(json part, std::size_t at, const char* status) const {
    json message;
    message["id"] = item_id("msg_", at);
    message["type"] = "message";
    message["status"] = status;
    message["role"] = "assistant";
    message["content"] = json::array({std::move(part)});
    return message;
  }
  [[nodiscard]] json thought_object(std::string text, std::size_t at, const char* status) const {
    json thought;
    thought["id"] = item_id("rs_", at);
    thought["type"] = "reasoning";
    thought["status"] = status;
    thought["summary"] = json::array();
    thought["content"] = json::array({thought_part(std::move(text))});
    return thought;
  }
  [[nodiscard]] json response_object(const std::string& status, json output) const {
    json object;
    object["id"] = "resp_" + id_;
    object["object"] = "response";
    object["created_at"] = head_.created_seconds;
    object["status"] = status;
    object["background"] = false;
    object["error"] = nullptr;
    object["incomplete_details"] = status == "incomplete" ? json{{"reason", "max_output_tokens"}} : json(nullptr);
    object["model"] = head_.model;
    object["output"] = std::move(output);
    object["previous_response_id"] = nullptr;
    object["store"] = false;
    object["usage"] = nullptr;
    return object;
  }
  /// The response as JSON, including what it repeats of the request.
  [[nodiscard]] std::string whole_text(const json& response) const {
    std::string text = dump_json(response);
    text.back() = ',';
    return text += std::string_view(*repeated_).substr(1);
  }
  static std::string response_event(std::string_view name, std::uint64_t number, std::string_view response) {
    std::string text = "event: " + std::string(name) + "\ndata: {\"type\":\"" + std::string(name) +
                       "\",\"sequence_number\":" + std::to_string(number) + ",\"response\":";
    text += response;
    return text += "}\n\n";
  }
  std::string event(std::string_view name, json members) {
    json data;
    data["type"] = name;
    data["sequence_number"] = sequence_++;
    for (auto& [key, value] : members.get_ref<json::object_t&>()) data[key] = std::move(value);
    return api::named_event(name, data);
  }
  enum class item : std::uint8_t { none, message, thought };

  [[nodiscard]] json open_object(const std::string& text, const char* status) const {
    return open_ == item::message ? message_object(open_part(text), output_.size(), status)
                                  : thought_object(text, output_.size(), status);
  }
  [[nodiscard]] json open_part(const std::string& text) const {
    return open_ == item::message ? text_part(text, logprobs_) : thought_part(text);
  }
  /// Adds the members that identify the open item's part to an event.
  [[nodiscard]] json of_part(json members) const {
    members["item_id"] = item_id(open_ == item::message ? "msg_" : "rs_", output_.size());
    members["output_index"] = output_.size();
    members["content_index"] = 0;
    return members;
  }
  std::string open(item kind) {
    if (open_ == kind) return {};
    std::string events = close_item();
    open_ = kind;
    json object = open_object("", "in_progress");
    object["content"] = json::array();
    events += event("response.output_item.added", {{"output_index", output_.size()}, {"item", std::move(object)}});
    return events += event("response.content_part.added", of_part({{"part", open_part("")}}));
  }
  std::string close_item() {
    const auto at = output_.size();
    const char* status = finish_ == api::finish_reason::length ? "incomplete" : "completed";
    std::string events;
    if (open_ != item::none) {
      if (open_ == item::message) {
        add(std::exchange(fresh_logprobs_, json::array()), logprobs_);
        events += event("response.output_text.done", of_part({{"text", text_}, {"logprobs", logprobs_}}));
      } else {
        events += event("response.reasoning_text.done", of_part({{"text", text_}}));
      }
      events += event("response.content_part.done", of_part({{"part", open_part(text_)}}));
      output_.push_back(open_object(std::exchange(text_, {}), status));
      logprobs_ = json::array();
      open_ = item::none;
    } else if (const auto call = std::exchange(call_, std::nullopt)) {
      events +=
          event("response.function_call_arguments.done",
                {{"item_id", call_id(at)}, {"output_index", at}, {"name", call->name}, {"arguments", call->arguments}});
      output_.push_back(call_object(*call, at, status));
    } else {
      return events;
    }
    return events += event("response.output_item.done", {{"output_index", at}, {"item", output_.back()}});
  }

  const api::response_head head_;
  const std::string id_;
  const std::shared_ptr<const std::string> repeated_;  // a JSON object that has members
  std::uint64_t sequence_ = 0;
  json output_ = json::array();           // completed items
  std::string text_;                      // text of the open message or reasoning
  json logprobs_ = json::array();         // log-probabilities of the open message
  json fresh_logprobs_ = json::array();   // log-probabilities of tokens whose text was not sent yet
  std::optional<tools::tool_call> call_;  // the open call
  item open_ = item::none;
  api::finish_reason finish_ = api::finish_reason::stop;
};

}  // namespace

response_shape::response_shape(const json& request) {
  static const json defaults = {{"instructions", nullptr},
                                {"max_output_tokens", nullptr},
                                {"max_tool_calls", nullptr},
                                {"metadata", json::object()},
                                {"parallel_tool_calls", true},
                                {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
                                {"service_tier", "default"},
                                {"temperature", 1},
                                {"text", {{"format", {{"type", "text"}}}}},
                                {"tool_choice", "auto"},
                                {"tools", json::array()},
                                {"top_logprobs", 0},
                                {"top_p", 1},
                                {"truncation", "disabled"},
                                {"user", nullptr}};
  json repeated;
  for (const auto& [name, usual] : defaults.get_ref<const json::object_t&>()) {
    const auto at = request.find(name);
    repeated[name] = at != request.end() && !at->is_null() ? *at : usual;
  }
  if (!repeated["text"].contains("format")) repeated["text"]["format"] = json{{"type", "text"}};
  repeated["service_tier"] = "default";
  repeated["truncation"] = "disabled";
  repeated_ = std::make_shared<const std::string>(dump_json(repeated));
}

std::unique_ptr<api::answer_writer> response_shape::make_writer(const api::response_head& head) const {
  return std::make_unique<response_writer>(head, repeated_);
}

}  // namespace redline::responses
