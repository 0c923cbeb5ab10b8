#include "actors/http/shapes/apply/apply_request.hpp"

#include <memory>
#include <utility>

#include "actors/http/shapes/apply/apply_response.hpp"
#include "actors/http/shapes/openai/translation.hpp"
#include "actors/prompts/edit_prompt.hpp"

namespace redline::apply {
namespace {

using api::api_error, api::field_reader, api::json;

const api::request_limits usual;

/// Reads the text under one of its two names; empty if both are absent.
std::optional<std::string> read_either(field_reader& fields, const char* name, const char* other) {
  if (auto text = fields.text(name, usual.text_bytes_max)) return text;
  return fields.text(other, usual.text_bytes_max);
}

std::string instruction_of(const std::string& update, const std::string& wish) {
  // Fenced like an answer, so that nothing in the update ends the fence.
  const std::string fenced = actors::answer_of({.path = {}, .before = update, .instruction = {}}, update);
  return "Apply this update to the file and write the whole new file. What the update leaves out, as at \"... existing "
         "code ...\", stays as it is.\n" +
         (wish.empty() ? std::string() : wish + "\n") + fenced + "\nThe file:";
}

/// The text between the tags, without the line breaks that belong to them.
std::optional<std::string> between(std::string_view text, std::string_view tag) {
  const std::string begin = "<|" + std::string(tag) + "|>", end = "<|/" + std::string(tag) + "|>";
  const auto from = text.find(begin);
  if (from == std::string_view::npos) return std::nullopt;
  text.remove_prefix(from + begin.size());
  const auto to = text.find(end);
  if (to == std::string_view::npos) return std::nullopt;
  text = text.substr(0, to);
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

/// The request for the whole new file. more: members that all forms share.
json request_for(const actors::edit_task& task, const json& more) {
  json out;
  out["messages"] = json::array({json{{"role", "user"}, {"content", actors::message_of(task)}}});
  out["prediction"] = json{{"type", "content"}, {"content", actors::answer_of(task, task.before)}};
  out["temperature"] = 0;
  api::copy_members(
      more, out, {{"model", "model"}, {"max_tokens", "max_tokens"}, {"temperature", "temperature"}, {"seed", "seed"}});
  api::copy_our_members(more, out);
  return out;
}

/// Refuses a file that no endpoint may edit; see actors::check_editable.
void refuse_no_text(field_reader& fields, const char* name, const actors::edit_task& task) {
  if (const auto checked = actors::check_editable(task); !checked)
    fields.refuse(name, "'" + fields.path_of(name) + "': " + checked.error().context + ".");
}

void refuse_stream(field_reader& fields) {
  if (!fields.boolean("stream").value_or(false)) return;
  fields.refuse("stream", "'stream' is not supported here: the merged file is checked before it is sent.",
                "unsupported_parameter");
}

}  // namespace

api::checked<api::generation_request> parse_apply_completion(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  const json* messages = fields.array("messages", limits.messages_max);
  const bool is_one = messages != nullptr && messages->size() == 1 && (*messages)[0].is_object() &&
                      (*messages)[0].value("role", json()) == "user";
  if (!is_one) fields.refuse("messages", "'messages' must be one message of role user: the file and the update to it.");
  refuse_stream(fields);
  if (error) return std::move(*error);
  field_reader message((*messages)[0], "messages[0]", error);
  const auto text = api::read_texts(message, "content", {"text"}, {}, "", error);
  auto before = between(text, "original_code");
  const auto update = between(text, "update_snippet");
  if (!error && (!before || !update)) {
    message.refuse(
        "content",
        "'messages[0].content' must contain the file between <|original_code|> and <|/original_code|>, and the "
        "update between <|update_snippet|> and <|/update_snippet|>.");
  }
  if (error) return std::move(*error);
  actors::edit_task task{.path = {}, .before = std::move(*before), .instruction = instruction_of(*update, {})};
  refuse_no_text(message, "content", task);
  if (error) return std::move(*error);
  const json out = request_for(task, *parsed);
  return api::read_translated(out, std::make_shared<merged_shape>(std::move(task), merged_shape::form::chat), {},
                              limits);
}

api::checked<api::generation_request> parse_apply(std::string_view body, const api::request_limits& limits) {
  const auto parsed = api::parse_body(body);
  if (!parsed) return parsed.error();
  std::optional<api_error> error;
  field_reader fields(*parsed, "", error);
  auto before = read_either(fields, "initialCode", "initial_code");
  if (!before) fields.refuse("initialCode", "'initialCode' is required: the file to change.");
  const auto update = read_either(fields, "editSnippet", "edit_snippet");
  if (!update) fields.refuse("editSnippet", "'editSnippet' is required: the update to the file.");
  const auto wish = read_either(fields, "instruction", "instructions").value_or("");
  const auto path = read_either(fields, "filePath", "file_path").value_or("");
  refuse_stream(fields);
  if (error) return std::move(*error);
  actors::edit_task task{.path = path, .before = std::move(*before), .instruction = instruction_of(*update, wish)};
  refuse_no_text(fields, "initialCode", task);
  if (error) return std::move(*error);
  const json out = request_for(task, *parsed);
  return api::read_translated(out, std::make_shared<merged_shape>(std::move(task)), {{"initialCode", "messages"}},
                              limits);
}

}  // namespace redline::apply
