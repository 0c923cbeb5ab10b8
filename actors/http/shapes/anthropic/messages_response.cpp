#include "actors/http/shapes/anthropic/messages_response.hpp"

#include <algorithm>
#include <utility>

#include "actors/http/request/answer_parts.hpp"

namespace redline::anthropic {
namespace {

using api::json;

void say_why_it_ended(json& object, api::finish_reason why, const std::string& stop_text) {
  const bool is_stopped = why == api::finish_reason::stop && !stop_text.empty();
  object["stop_reason"] = why == api::finish_reason::length       ? "max_tokens"
                          : why == api::finish_reason::tool_calls ? "tool_use"
                          : is_stopped                            ? "stop_sequence"
                                                                  : "end_turn";
  object["stop_sequence"] = is_stopped ? json(stop_text) : json(nullptr);
}

/// Anthropic's input_tokens exclude those found in the cache.
json usage_of(const api::usage_report& usage) {
  json object;
  object["input_tokens"] = usage.prompt_tokens - std::min(usage.cached_tokens, usage.prompt_tokens);
  object["cache_creation_input_tokens"] = 0;
  object["cache_read_input_tokens"] = std::min(usage.cached_tokens, usage.prompt_tokens);
  object["output_tokens"] = usage.completion_tokens;
  return object;
}

class message_writer final : public api::answer_writer {
 public:
  message_writer(const api::response_head& head, bool shows_thoughts) : head_(head), shows_thoughts_(shows_thoughts) {}

  std::string first(std::uint32_t /*index*/, std::span<const token> /*prompt*/) override {
    json message = head_object();
    message["content"] = json::array();
    message["stop_reason"] = nullptr;
    message["stop_sequence"] = nullptr;
    message["usage"] = usage_of({.prompt_tokens = head_.prompt_tokens});
    json event;
    event["type"] = "message_start";
    event["message"] = std::move(message);
    return api::named_event("message_start", event) + api::named_event("ping", json{{"type", "ping"}});
  }
  std::string delta(std::uint32_t /*index*/, std::string_view text, const std::vector<api::token_report>* /*tokens*/,
                    std::string_view reasoning) override {
    std::string events;
    if (shows_thoughts_ && !reasoning.empty()) {
      events += open(block::thinking);
      events += block_delta(json{{"type", "thinking_delta"}, {"thinking", reasoning}});
    }
    if (text.empty()) return events;
    events += open(block::text);
    return events += block_delta(json{{"type", "text_delta"}, {"text", text}});
  }
  std::string call(std::uint32_t /*index*/, std::uint32_t /*number*/, const tools::tool_call& begun,
                   bool /*is_legacy*/) override {
    std::string events = close_block();
    return events + open_block(block::tool, tool_block(begun));
  }
  std::string arguments(std::uint32_t /*index*/, std::uint32_t /*number*/, std::string_view text,
                        bool /*is_legacy*/) override {
    return text.empty() ? std::string() : block_delta(json{{"type", "input_json_delta"}, {"partial_json", text}});
  }
  std::string finish(const api::choice& one) override {
    finish_ = one.finish;
    stop_text_ = one.stop_text;
    std::string events;
    if (index_ == 0 && open_ == block::none)
      events += open(block::text);  // every answer has a block, even an empty one
    return events += close_block();
  }
  std::string end(const api::usage_report& usage) override {
    json event;
    event["type"] = "message_delta";
    say_why_it_ended(event["delta"], finish_, stop_text_);
    event["usage"] = usage_of(usage);
    return api::named_event("message_delta", event) + api::named_event("message_stop", json{{"type", "message_stop"}});
  }
  [[nodiscard]] std::string error(const api::api_error& why) const override {
    return "event: error\ndata: " + anthropic::error_body(why) + "\n\n";
  }
  [[nodiscard]] std::string whole(std::span<const api::choice> choices, const api::usage_report& usage) const override {
    const auto& one = choices.front();
    json message = head_object();
    message["content"] = json::array();
    if (shows_thoughts_ && !one.reasoning.empty()) message["content"].push_back(thinking_block(one.reasoning));
    if (!one.text.empty() || (one.calls.empty() && message["content"].empty())) {
      message["content"].push_back(text_block(one.text));
    }
    for (const auto& call : one.calls) {
      message["content"].push_back(tool_block(call));
      message["content"].back()["input"] = api::arguments_object(call);
    }
    say_why_it_ended(message, one.finish, one.stop_text);
    message["usage"] = usage_of(usage);
    return dump_json(message);
  }

 private:
  [[nodiscard]] json head_object() const {
    json message;
    message["id"] = "msg_" + head_.id.substr(head_.id.find('-') + 1);
    message["type"] = "message";
    message["role"] = "assistant";
    message["model"] = head_.model;
    return message;
  }
  enum class block : std::uint8_t { none, text, thinking, tool };

  static json text_block(const std::string& text) { return json{{"type", "text"}, {"text", text}}; }
  /// Nothing is signed: reasoning that comes back with the history is left out of the prompt, whatever its origin.
  static json thinking_block(const std::string& text) {
    return json{{"type", "thinking"}, {"thinking", text}, {"signature", ""}};
  }

  static json tool_block(const tools::tool_call& call) {
    json object;
    object["type"] = "tool_use";
    object["id"] = call.id;
    object["name"] = call.name;
    object["input"] = json::object();
    return object;
  }
  /// kind: text or thinking.
  std::string open(block kind) {
    if (open_ == kind) return {};
    std::string events = close_block();
    return events += open_block(kind, kind == block::text ? text_block("") : thinking_block(""));
  }
  std::string open_block(block kind, json content) {
    open_ = kind;
    json event;
    event["type"] = "content_block_start";
    event["index"] = index_;
    event["content_block"] = std::move(content);
    return api::named_event("content_block_start", event);
  }
  [[nodiscard]] std::string block_delta(json delta) const {
    json event;
    event["type"] = "content_block_delta";
    event["index"] = index_;
    event["delta"] = std::move(delta);
    return api::named_event("content_block_delta", event);
  }
  std::string close_block() {
    if (std::exchange(open_, block::none) == block::none) return {};
    json event;
    event["type"] = "content_block_stop";
    event["index"] = index_++;
    return api::named_event("content_block_stop", event);
  }

  const api::response_head head_;
  const bool shows_thoughts_;
  std::size_t index_ = 0;  // index of the open or the next block
  block open_ = block::none;
  api::finish_reason finish_ = api::finish_reason::stop;
  std::string stop_text_;
};

std::string_view type_of(unsigned status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

std::unique_ptr<api::answer_writer> message_shape::make_writer(const api::response_head& head) const {
  return std::make_unique<message_writer>(head, shows_thoughts);
}

std::string error_body(const api::api_error& why) {
  json object;
  object["type"] = "error";
  object["error"] = json{{"type", type_of(why.status)}, {"message", why.message}};
  return dump_json(object);
}

std::string count_body(std::size_t prompt_tokens) { return dump_json(json{{"input_tokens", prompt_tokens}}); }

}  // namespace redline::anthropic
