#include "actors/cli/model_door.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "actors/cli/json_members.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::actors::cli {
namespace {

using json = nlohmann::ordered_json;

// A private server may compute for as long as it takes.
constexpr std::chrono::seconds own_patience{604800};
// Allows time from a broken connection to the process's end, which may free much memory.
constexpr std::chrono::milliseconds dying_max{2000};

}  // namespace

result<model_door> model_door::of_server(const std::string& url, const std::string& api_key) {
  model_door door;
  REDLINE_TRY_ASSIGN(door.server_, server_address::parse(url, api_key));
  return door;
}

result<model_door> model_door::of_own_server(const model_flags& models, const method_flags& method,
                                             std::size_t answers_max) {
  REDLINE_TRY_ASSIGN(const auto drafts, to_draft_options(method, !models.draft.empty()));
  auto words = words_of(models);
  for (auto& word : words_of(drafts)) words.push_back(std::move(word));
  words.insert(words.end(), {"--running-max", std::to_string(std::max<std::size_t>(answers_max, 1)), "--answer-timeout",
                             std::to_string(own_patience.count())});
  model_door door;
  door.child_ = std::make_unique<child_server>();
  REDLINE_TRY(door.child_->launch(words, child_server::prompts::shared));
  REDLINE_TRY_ASSIGN(const auto at, door.child_->wait_until_ready(model_loading_max));
  REDLINE_TRY_ASSIGN(door.server_, server_address::parse(at.url, at.api_key));
  return door;
}

transport::http_client_options model_door::patience() const {
  transport::http_client_options options;
  if (child_) options.silence_timeout = own_patience;
  return options;
}

failure model_door::refusal(const transport::http_response& answer) const {
  const json error = json::parse(answer.body, nullptr, false);
  const json& told = member(error, "error", "message");
  if (text_of(member(error, "error", "code")) == "context_length_exceeded")
    return {errc::context_length_exceeded, text_of(told)};
  if (child_ && told.is_string()) return {answer.status < 500 ? errc::invalid_argument : errc::internal, text_of(told)};
  return {errc::internal, "the server refused: HTTP status " + std::to_string(answer.status) +
                              (told.is_string() ? ": " + text_of(told) : std::string())};
}

failure model_door::explain(const failure& why) const {
  if (!child_ || !child_->ends_within(dying_max)) return why;
  return {errc::internal, "the process that computes the answer " + child_->describe_end()};
}

result<json> model_door::ask(const std::string& target, const json& body) const {
  auto where = server_.url;
  where.target += target;
  const auto answer = transport::http_post(where, server_.headers, dump_json(body), patience());
  if (!answer) return explain(answer.error());
  if (answer->status != 200) return refusal(*answer);
  json whole = json::parse(answer->body, nullptr, false);
  if (!whole.is_object())
    return failure{errc::malformed_message, "the server sent an answer that is not a JSON object"};
  return whole;
}

result<void> model_door::ask(const std::string& target, const json& body,
                             const std::function<void(const json& chunk)>& on_chunk) const {
  auto where = server_.url;
  where.target += target;
  std::optional<failure> broken;
  bool done = false;
  const auto take = [&](const transport::sse_event& event) {
    if (event.data == "[DONE]") {
      done = true;
      return true;
    }
    const json chunk = json::parse(event.data, nullptr, false);
    if (!chunk.is_object()) {
      broken = failure{errc::malformed_message, "the server sent an event that is not a JSON object"};
    } else if (!member(chunk, "error").is_null()) {
      const std::string told = text_of(member(chunk, "error", "message"));
      broken = failure{errc::internal, child_ ? told : "the server says: " + told};
    } else {
      on_chunk(chunk);
    }
    return !broken;
  };
  const auto answer = transport::http_post_stream(where, server_.headers, dump_json(body), take, patience());
  if (!answer) return explain(answer.error());
  if (broken) return *broken;
  if (answer->status != 200) return refusal(*answer);
  if (!done) return explain({errc::io_error, "the server's answer ended early"});
  return {};
}

}  // namespace redline::actors::cli
