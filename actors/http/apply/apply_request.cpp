#include "actors/http/apply/apply_request.hpp"

#include <memory>
#include <utility>

#include "actors/editing/edit_prompt.hpp"
#include "actors/http/apply/apply_response.hpp"
#include "actors/http/openai/translation.hpp"

namespace redline::apply {
namespace {

using api::api_error, api::field_reader, api::json;

const api::request_limits usual;

/// Under one of its two names; empty where there is none.
std::optional<std::string> read_either(field_reader& fields, const char* name, const char* other) {
  if (auto text = fields.text(name, usual.text_bytes_max)) return text;
  return fields.text(other, usual.text_bytes_max);
}

std::string instruction_of(const std::string& update, const std::string& wish) {
  // Fenced as an answer is, so that nothing in the update ends the fence.
  const std::string fenced = actors::answer_of({.path = {}, .before = update, .instruction = {}}, update);
  return "Apply this update to the file and write the whole new file. What the update leaves out, as at \"... existing "
         "code ...\", stays as it is.\n" +
         (wish.empty() ? std::string() : wish + "\n") + fenced + "\nThe file:";
}

}  // namespace

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
  if (fields.boolean("stream").value_or(false)) {
    fields.refuse("stream", "'stream' is not supported here: the merged file is checked before it is sent.",
                  "unsupported_parameter");
  }
  if (error) return std::move(*error);
  actors::edit_task task{.path = path, .before = std::move(*before), .instruction = instruction_of(*update, wish)};
  json out;
  out["messages"] = json::array({json{{"role", "user"}, {"content", actors::message_of(task)}}});
  out["prediction"] = json{{"type", "content"}, {"content", actors::answer_of(task, task.before)}};
  out["temperature"] = 0;
  api::copy_members(
      *parsed, out,
      {{"model", "model"}, {"max_tokens", "max_tokens"}, {"temperature", "temperature"}, {"seed", "seed"}});
  api::copy_our_members(*parsed, out);
  return api::read_translated(out, std::make_shared<merged_shape>(std::move(task)), {{"initialCode", "messages"}},
                              limits);
}

}  // namespace redline::apply
