#include "actors/http/shapes/apply/edit_completion.hpp"

#include <string>
#include <utility>

#include "actors/http/shapes/openai/translation.hpp"
#include "actors/prompts/edit_prompt.hpp"

namespace redline::apply {
namespace {

using api::api_error, api::field_reader, api::json;

constexpr std::string_view region_begin = "<|code_to_edit|>", region_end = "<|/code_to_edit|>", cursor = "<|cursor|>";

constexpr std::string_view explanation =
    "You complete edits. Between <|current_file_content|> and <|/current_file_content|> is a file, in it between "
    "<|code_to_edit|> and <|/code_to_edit|> the region to rewrite, with <|cursor|> where the cursor is. Between "
    "<|edit_diff_history|> and <|/edit_diff_history|> are the last edits, the newest last. Write the whole region as "
    "it "
    "is after the edit that comes next, without tags, in one code fence, and nothing else.";

/// The region without the cursor; nullopt if there is no complete region.
std::optional<std::string> find_region(std::string_view message) {
  const auto begin = message.find(region_begin);
  if (begin == std::string_view::npos) return std::nullopt;
  message.remove_prefix(begin + region_begin.size());
  const auto end = message.find(region_end);
  if (end == std::string_view::npos) return std::nullopt;
  std::string region(message.substr(0, end));
  if (region.starts_with('\n')) region.erase(0, 1);
  if (const auto at = region.find(cursor); at != std::string::npos) region.erase(at, cursor.size());
  return region;
}

}  // namespace

api::checked<api::generation_request> parse_edit_completion(std::string_view body, const api::request_limits& limits) {
  auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  json& request = *parsed;
  std::optional<api_error> error;
  field_reader fields(request, "", error);
  const json* messages = fields.array("messages", limits.messages_max);
  if (messages == nullptr) {
    fields.refuse("messages", "'messages' is required.");
  } else if (messages->size() != 1 || !(*messages)[0].is_object() || (*messages)[0].value("role", json()) != "user") {
    fields.refuse("messages",
                  "'messages' must be one message of role user: the file, its region to rewrite and the last edits.");
  }
  if (error) return std::move(*error);
  field_reader message((*messages)[0], "messages[0]", error);
  const auto text = api::read_texts(message, "content", {"text"}, {}, "", error);
  const auto region = find_region(text);
  if (!error && !region) {
    message.refuse(
        "content",
        "'messages[0].content' must contain the region to rewrite between <|code_to_edit|> and <|/code_to_edit|>.");
  }
  if (error) return std::move(*error);
  request["messages"] =
      json::array({json{{"role", "system"}, {"content", explanation}}, json{{"role", "user"}, {"content", text}}});
  if (!request.contains("prediction")) {
    const actors::edit_task task{.path = {}, .before = *region, .instruction = {}};
    request["prediction"] = json{{"type", "content"}, {"content", actors::answer_of(task, *region)}};
  }
  return api::read_translated(request, nullptr, {}, limits);
}

}  // namespace redline::apply
