#include "actors/http/shapes/ollama/ollama_response.hpp"

#include <array>
#include <cmath>
#include <ctime>
#include <utility>

#include "actors/http/request/answer_parts.hpp"

namespace redline::ollama {
namespace {

using api::json;

std::string time_of(std::int64_t unix_seconds) {
  const std::time_t seconds = unix_seconds;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string_view done_reason_of(api::finish_reason why) {
  return why == api::finish_reason::length ? "length" : "stop";
}

json details_object() {
  json details;
  details["parent_model"] = "";
  details["format"] = "gguf";
  details["family"] = "";
  details["families"] = nullptr;
  details["parameter_size"] = "";
  details["quantization_level"] = "";
  return details;
}

json card_object(const api::model_card& card) {
  json object;
  object["name"] = card.id;
  object["model"] = card.id;
  object["modified_at"] = time_of(card.created_seconds);
  object["size"] = 0;
  object["digest"] = "";
  object["details"] = details_object();
  return object;
}

class line_writer final : public api::answer_writer {
 public:
  line_writer(const api::response_head& head, bool is_chat, bool only_loads)
      : model_(head.model), created_(time_of(head.created_seconds)), is_chat_(is_chat), only_loads_(only_loads) {}

  [[nodiscard]] std::string_view stream_type() const override { return "application/x-ndjson"; }
  std::string first(std::uint32_t /*index*/, std::span<const token> /*prompt*/) override { return {}; }
  std::string delta(std::uint32_t /*index*/, std::string_view text, const std::vector<api::token_report>* /*tokens*/,
                    std::string_view reasoning) override {
    if ((text.empty() && reasoning.empty()) || only_loads_) return {};
    json line = part(text, reasoning);
    line["done"] = false;
    return dump_json(line) + "\n";
  }
  std::string call(std::uint32_t /*index*/, std::uint32_t /*number*/, const tools::tool_call& begun,
                   bool /*is_legacy*/) override {
    calls_.push_back(begun);
    return {};
  }
  std::string arguments(std::uint32_t /*index*/, std::uint32_t /*number*/, std::string_view text,
                        bool /*is_legacy*/) override {
    if (!calls_.empty()) calls_.back().arguments += text;
    return {};
  }
  /// Calls are sent whole, as in Ollama's API.
  std::string finish(const api::choice& one) override {
    finish_ = one.finish;
    if (calls_.empty()) return {};
    json line = part("");
    line["message"]["tool_calls"] = calls_object(calls_);
    line["done"] = false;
    return dump_json(line) + "\n";
  }
  std::string end(const api::usage_report& usage) override {
    return dump_json(with_counts(part(""), finish_, usage)) + "\n";
  }
  [[nodiscard]] std::string error(const api::api_error& why) const override { return ollama::error_body(why) + "\n"; }
  [[nodiscard]] std::string whole(std::span<const api::choice> choices, const api::usage_report& usage) const override {
    const auto& one = choices.front();
    json body = only_loads_ ? part("") : part(one.text, one.reasoning);
    if (!one.calls.empty()) body["message"]["tool_calls"] = calls_object(one.calls);
    return dump_json(with_counts(std::move(body), one.finish, usage));
  }

 private:
  static json calls_object(const std::vector<tools::tool_call>& calls) {
    json list = json::array();
    for (const auto& call : calls) {
      json entry;
      entry["id"] = call.id;
      entry["function"]["name"] = call.name;
      entry["function"]["arguments"] = api::arguments_object(call);
      list.push_back(std::move(entry));
    }
    return list;
  }
  [[nodiscard]] json part(std::string_view text, std::string_view reasoning = {}) const {
    json line;
    line["model"] = model_;
    line["created_at"] = created_;
    if (is_chat_) {
      line["message"] = json{{"role", "assistant"}, {"content", text}};
    } else {
      line["response"] = text;
    }
    if (!reasoning.empty()) (is_chat_ ? line["message"] : line)["thinking"] = reasoning;
    return line;
  }
  /// Times are in nanoseconds. The time for the prompt is not separated from the time for the answer.
  [[nodiscard]] json with_counts(json line, api::finish_reason why, const api::usage_report& usage) const {
    const double seconds = std::isfinite(usage.seconds) ? usage.seconds : 0;
    const auto nanoseconds = static_cast<std::int64_t>(seconds * 1e9);
    line["done"] = true;
    line["done_reason"] = only_loads_ ? "load" : done_reason_of(why);
    line["total_duration"] = nanoseconds;
    line["load_duration"] = 0;
    line["prompt_eval_count"] = usage.prompt_tokens;
    line["prompt_eval_duration"] = 0;
    line["eval_count"] = usage.completion_tokens;
    line["eval_duration"] = nanoseconds;
    return line;
  }

  const std::string model_, created_;
  const bool is_chat_, only_loads_;
  std::vector<tools::tool_call> calls_;
  api::finish_reason finish_ = api::finish_reason::stop;
};

}  // namespace

std::unique_ptr<api::answer_writer> answer_shape::make_writer(const api::response_head& head) const {
  return std::make_unique<line_writer>(head, is_chat_, only_loads_);
}

std::string error_body(const api::api_error& why) { return dump_json(json{{"error", why.message}}); }

std::string model_list_body(std::span<const api::model_card> cards) {
  json models = json::array();
  for (const auto& card : cards) models.push_back(card_object(card));
  return dump_json(json{{"models", std::move(models)}});
}

std::string running_body(std::span<const api::model_card> cards) {
  constexpr std::int64_t never = 253402300799;  // the last second of the year 9999
  json models = json::array();
  for (const auto& card : cards) {
    json one = card_object(card);
    one["expires_at"] = time_of(never);
    one["size_vram"] = 0;
    one["context_length"] = card.context_tokens_max;
    models.push_back(std::move(one));
  }
  return dump_json(json{{"models", std::move(models)}});
}

std::string model_body(const api::model_card& card) {
  json info;
  info["general.architecture"] = "redline";  // clients find the context length by it
  info["redline.context_length"] = card.context_tokens_max;
  json object;
  object["modelfile"] = "";
  object["parameters"] = "";
  object["template"] = "";  // the file's template is in another language
  object["details"] = details_object();
  object["model_info"] = std::move(info);
  object["capabilities"] = json::array({"completion", "tools"});
  object["modified_at"] = time_of(card.created_seconds);
  return dump_json(object);
}

}  // namespace redline::ollama
