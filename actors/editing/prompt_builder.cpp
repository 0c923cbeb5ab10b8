#include "actors/editing/prompt_builder.hpp"

#include <optional>
#include <utility>

#include "actors/serving/chat_turns.hpp"
#include "runtime/base/utf8.hpp"
#include "runtime/json/strict_json.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

/// Calls `visit` with each text of a message but its role.
template<class Json, class Visit>
void visit_texts(Json& value, const Visit& visit) {
  if (value.is_string()) return visit(value);
  if (!value.is_structured()) return;
  for (auto at = value.begin(); at != value.end(); ++at) {
    if (value.is_object() && at.key() == "role") continue;
    visit_texts(*at, visit);
  }
}

/// One of Unicode's noncharacters, which no text means anything by, that none of the messages holds.
std::optional<std::string> unused_mark(const json& messages, std::string_view tools) {
  for (unsigned char last = 0x90; last <= 0xAF; ++last) {  // U+FDD0 to U+FDEF
    const std::string mark = {static_cast<char>(0xEF), static_cast<char>(0xB7), static_cast<char>(last)};
    bool is_used = tools.find(mark) != std::string_view::npos;
    visit_texts(messages, [&](const json& text) {
      is_used = is_used || text.get_ref<const std::string&>().find(mark) != std::string::npos;
    });
    if (!is_used) return mark;
  }
  return std::nullopt;
}

}  // namespace

std::string rendered_conversation::text_without_marks() const {
  if (mark.empty()) return text;
  std::string out = text;
  for (auto at = out.find(mark); at != std::string::npos; at = out.find(mark, at)) out.erase(at, mark.size());
  return out;
}

prompt_builder::prompt_builder(std::shared_ptr<const text::tokenizer> tokenizer, jinja::chat_template chat)
    : tokenizer_(std::move(tokenizer)), chat_(std::move(chat)), tools_(tool_style::of(chat_, input_base())) {}

result<prompt_builder> prompt_builder::make(std::shared_ptr<const text::tokenizer> tokenizer) {
  REDLINE_TRY_ASSIGN(auto chat, jinja::chat_template::parse(
                                    tokenizer->vocab().chat_template().value_or(std::string(jinja::chatml_template))));
  return prompt_builder(std::move(tokenizer), std::move(chat));
}

jinja::chat_input prompt_builder::input_base() const {
  jinja::chat_input input;
  const auto& vocab = tokenizer_->vocab();
  // Templates add them to texts without asking whether there are any.
  input.bos_token = vocab.bos() ? std::string(vocab.text(*vocab.bos())) : std::string();
  input.eos_token = vocab.eos() ? std::string(vocab.text(*vocab.eos())) : std::string();
  return input;
}

result<std::string> prompt_builder::apply_template(const json& messages, bool add_generation_prompt, std::int64_t now,
                                                   const json& tools, const json& variables) const {
  jinja::chat_input input = input_base();
  input.variables = variables;
  input.messages = messages;
  input.add_generation_prompt = add_generation_prompt;
  input.now = now;
  if (!tools.is_null()) input.variables["tools"] = tools;
  return chat_.render(input);
}

result<rendered_conversation> prompt_builder::render(const json& messages, bool add_generation_prompt, std::int64_t now,
                                                     const tools::tool_set* tools, const json& variables) const {
  rendered_conversation out{.messages = messages, .tools = nullptr, .variables = variables, .text = {}, .mark = {}};
  if (tools != nullptr && tools->call != tools::choice::none) {
    if (const auto why = tools_.why_no_tools()) return *why;
    out.tools = tool_style::tools_for_template(*tools);
  }
  // As one text, so that names of members are seen, too.
  const std::string tools_text = out.tools.is_null() ? std::string() : dump_json(out.tools);
  bool spells_control = tokenizer_->spells_control(tools_text);
  const auto look = [&](const json& text) {
    spells_control = spells_control || tokenizer_->spells_control(text.get_ref<const std::string&>());
  };
  visit_texts(messages, look);
  visit_texts(variables, look);
  if (spells_control) {
    const auto mark = unused_mark(json::array({messages, variables}), tools_text);
    if (!mark) {
      return failure{errc::invalid_argument,
                     "the messages spell control tokens and hold all of the characters U+FDD0 to U+FDEF, one of which "
                     "is needed to tell the two apart; leave one out"};
    }
    out.mark = *mark;
    const auto shield = [&](json& text) { text = tokenizer_->shield(text.get_ref<const std::string&>(), out.mark); };
    visit_texts(out.messages, shield);
    visit_texts(out.variables, shield);
    if (!out.tools.is_null()) {
      REDLINE_TRY_ASSIGN(out.tools, parse_json<json>(tokenizer_->shield(tools_text, out.mark), {.depth_max = 128}));
    }
  }
  REDLINE_TRY_ASSIGN(out.messages, tools_.messages_for_template(out.messages));
  if (!out.tools.is_null() && !tools_.shows_tools()) {
    if (out.messages.front()["role"] != "system") {
      out.messages.insert(out.messages.begin(), json{{"role", "system"}, {"content", ""}});
    }
    auto& content = out.messages.front()["content"];
    content = content.get_ref<const std::string&>() + tools_.introduce(out.tools);
  }
  REDLINE_TRY_ASSIGN(out.text, apply_template(out.messages, add_generation_prompt, now, out.tools, out.variables));
  return out;
}

std::vector<token> prompt_builder::tokens(const rendered_conversation& of) const {
  return tokenizer_->encode(of.text, {.parse_special = true, .shield = of.mark});
}

std::vector<token_range> prompt_builder::turns(const rendered_conversation& of, std::span<const token> prompt,
                                               std::int64_t now) const {
  return older_turns(
      of.messages, of.text, prompt, *tokenizer_,
      [&](const json& first) { return apply_template(first, false, now, of.tools, of.variables); }, of.mark);
}

std::vector<token> prompt_builder::text(std::string_view text) const {
  return tokenizer_->encode(text, {.parse_special = true, .add_bos_eos = true});
}

result<std::vector<token>> prompt_builder::message_with_file(std::string_view message, std::int64_t now) const {
  if (utf8::valid_prefix_bytes(message) == message.size()) {
    REDLINE_TRY_ASSIGN(const auto rendered, render({{{"role", "user"}, {"content", message}}}, true, now));
    return tokens(rendered);
  }
  // The template's input is JSON, and so UTF-8: it sees a marker instead of these bytes.
  static constexpr std::string_view marker = "redline-file-goes-here";
  REDLINE_TRY_ASSIGN(const auto rendered, apply_template({{{"role", "user"}, {"content", marker}}}, true, now));
  const auto at = rendered.find(marker);
  if (at == std::string::npos) {
    return failure{errc::invalid_template, "the model's chat template does not show the user's message"};
  }
  const auto encode = [&](std::string_view part) { return tokenizer_->encode(part, {.parse_special = true}); };
  std::vector<token> out = encode(std::string_view(rendered).substr(0, at));
  const auto plain = tokenizer_->encode(message);
  const auto rest = encode(std::string_view(rendered).substr(at + marker.size()));
  out.insert(out.end(), plain.begin(), plain.end());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

}  // namespace redline::actors
