#include "actors/editing/prompt_builder.hpp"

#include <optional>
#include <utility>

#include "actors/serving/chat_turns.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors {

prompt_builder::prompt_builder(std::shared_ptr<const text::tokenizer> tokenizer, jinja::chat_template chat)
    : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)) {}

result<prompt_builder> prompt_builder::make(std::shared_ptr<const text::tokenizer> tokenizer) {
  REDLINE_TRY_ASSIGN(auto chat, jinja::chat_template::parse(
                                    tokenizer->vocab().chat_template().value_or(std::string(jinja::chatml_template))));
  return prompt_builder(std::move(tokenizer), std::move(chat));
}

result<std::string> prompt_builder::render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
                                           std::int64_t now) const {
  jinja::chat_input input{.messages = messages, .add_generation_prompt = add_generation_prompt, .now = now};
  const auto& vocab = tokenizer_->vocab();
  if (vocab.bos()) input.bos_token = std::string(vocab.text(*vocab.bos()));
  if (vocab.eos()) input.eos_token = std::string(vocab.text(*vocab.eos()));
  return chat_.render(input);
}

std::vector<token> prompt_builder::conversation(std::string_view rendered) const {
  return tokenizer_->encode(rendered, {.parse_special = true});
}

std::vector<token_range> prompt_builder::turns(const nlohmann::ordered_json& messages, std::string_view rendered,
                                               std::span<const token> prompt, std::int64_t now) const {
  return older_turns(messages, rendered, prompt, *tokenizer_,
                     [&](const nlohmann::ordered_json& first) { return render(first, false, now); });
}

std::vector<token> prompt_builder::text(std::string_view text) const {
  return tokenizer_->encode(text, {.parse_special = true, .add_bos_eos = true});
}

result<std::vector<token>> prompt_builder::message_with_file(std::string_view message, std::int64_t now) const {
  const auto plain = tokenizer_->encode(message);
  if (utf8::valid_prefix_bytes(message) == message.size() &&
      plain == tokenizer_->encode(message, {.parse_special = true})) {
    REDLINE_TRY_ASSIGN(const auto rendered, render({{{"role", "user"}, {"content", message}}}, true, now));
    return conversation(rendered);
  }
  // The template's input is JSON, and so UTF-8, and its output is parsed for special tokens. Neither is for these
  // bytes: the template sees a marker instead.
  static constexpr std::string_view marker = "redline-file-goes-here";
  REDLINE_TRY_ASSIGN(const auto rendered, render({{{"role", "user"}, {"content", marker}}}, true, now));
  const auto at = rendered.find(marker);
  if (at == std::string::npos) {
    return failure{errc::invalid_template, "the model's chat template does not show the user's message"};
  }
  std::vector<token> out = conversation(std::string_view(rendered).substr(0, at));
  const auto rest = conversation(std::string_view(rendered).substr(at + marker.size()));
  out.insert(out.end(), plain.begin(), plain.end());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace redline::actors
