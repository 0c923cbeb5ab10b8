#include "actors/http/shapes/openai/prompt_fields.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace redline::api {
namespace {

std::optional<prompt_input> as_prompt(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return std::nullopt;
  if (auto tokens = as_tokens(value)) return std::move(*tokens);
  return std::nullopt;
}

/// A list of {"text", "filename"}.
void read_context(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                  fill_request& out) {
  const json* list = fields.array("input_extra", limits.context_files_max);
  std::size_t bytes = 0;
  for (std::size_t i = 0; list != nullptr && i < list->size() && !error; ++i) {
    const std::string name = indexed("input_extra", i);
    if (!(*list)[i].is_object()) return fields.refuse_type(name, "an object", (*list)[i]);
    field_reader file((*list)[i], name, error);
    auto text = file.text("text", limits.text_bytes_max);
    if (!text) file.refuse("text", "'" + name + ".text' is required.");
    out.context.push_back({file.text("filename", limits.path_bytes_max).value_or(""), text ? std::move(*text) : ""});
    bytes += out.context.back().text.size();
  }
  if (bytes > limits.text_bytes_max) {
    fields.refuse("input_extra",
                  "'input_extra' must have at most " + std::to_string(limits.text_bytes_max) + " bytes in total.");
  }
}

}  // namespace

std::optional<std::vector<token>> as_tokens(const json& list) {
  std::vector<token> tokens;
  tokens.reserve(list.size());
  for (const auto& entry : list) {
    const auto id = as_integer(entry);
    if (!id || *id < 0 || *id > token_max) return std::nullopt;
    tokens.push_back(static_cast<token>(*id));
  }
  return tokens;
}

void read_prompts(field_reader& fields, const request_limits& limits, generation_request& out) {
  const json* prompt = fields.find("prompt");
  if (!prompt) return fields.refuse("prompt", "'prompt' is required.");
  const bool is_list = prompt->is_array() && !prompt->empty() && !(*prompt)[0].is_number();
  out.wants_list = is_list;
  const std::size_t count = is_list ? prompt->size() : 1;
  if (count > limits.prompts_max) {
    return fields.refuse("prompt", "'prompt' has " + std::to_string(count) + " entries, at most " +
                                       std::to_string(limits.prompts_max) + " are allowed.");
  }
  std::size_t bytes = 0, tokens_count = 0;
  for (std::size_t i = 0; i < count; ++i) {
    auto one = as_prompt(is_list ? (*prompt)[i] : *prompt);
    if (!one) {
      return fields.refuse(is_list ? indexed("prompt", i) : "prompt",
                           "'prompt' must be a string, an array of strings, an array of token ids or an array of "
                           "arrays of token ids.");
    }
    if (const auto* text = std::get_if<std::string>(&*one)) bytes += text->size();
    if (const auto* tokens = std::get_if<std::vector<token>>(&*one)) {
      tokens_count += tokens->size();
      if (tokens->empty()) {
        return fields.refuse(is_list ? indexed("prompt", i) : "prompt", "A prompt of token ids must not be empty.");
      }
    }
    out.prompts.push_back(std::move(*one));
  }
  if (bytes > limits.text_bytes_max || tokens_count > limits.prompt_tokens_max) {
    fields.refuse("prompt", "'prompt' is too long: at most " + std::to_string(limits.text_bytes_max) + " bytes or " +
                                std::to_string(limits.prompt_tokens_max) + " tokens are allowed.");
  }
}

void read_suffix(field_reader& fields, const request_limits& limits, generation_request& out) {
  auto suffix = fields.text("suffix", limits.text_bytes_max);
  if (out.from != endpoint::fim && (!suffix || suffix->empty())) return;
  const auto is_text = [](const prompt_input& p) { return std::holds_alternative<std::string>(p); };
  if (!std::all_of(out.prompts.begin(), out.prompts.end(), is_text)) {
    return fields.refuse("suffix", "'suffix' needs a 'prompt' that is text, the text before the gap.");
  }
  out.fill = fill_request{.suffix = std::move(suffix).value_or(""), .path = {}, .context = {}};
}

void read_infill(field_reader& fields, std::optional<api_error>& error, const request_limits& limits,
                 generation_request& out) {
  const auto prefix = fields.text("input_prefix", limits.text_bytes_max);
  auto suffix = fields.text("input_suffix", limits.text_bytes_max);
  const auto begun = fields.text("prompt", limits.text_bytes_max);
  if (!prefix && !suffix) {
    fields.refuse("input_prefix", "'input_prefix' and 'input_suffix' are required: the texts around the cursor.");
  }
  out.prompts.emplace_back(prefix.value_or("") + begun.value_or(""));
  out.fill = fill_request{.suffix = std::move(suffix).value_or(""), .path = {}, .context = {}};
  out.fill->path = fields.text("filename", limits.path_bytes_max).value_or("");
  read_context(fields, error, limits, *out.fill);
}

}  // namespace redline::api
