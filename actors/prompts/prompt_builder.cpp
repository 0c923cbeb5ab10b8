#include "actors/prompts/prompt_builder.hpp"

#include <optional>
#include <utility>

#include "actors/prompts/chat_turns.hpp"
#include "runtime/base/strict_json.hpp"

namespace redline::actors {
namespace {

using json = nlohmann::ordered_json;

/// Calls `visit` with each text of a message except its role.
template<class Json, class Visit>
void visit_texts(Json& value, const Visit& visit) {
  if (value.is_string()) return visit(value);
  if (!value.is_structured()) return;
  for (auto at = value.begin(); at != value.end(); ++at) {
    if (value.is_object() && at.key() == "role") continue;
    visit_texts(*at, visit);
  }
}

/// A Unicode noncharacter, meaningless in any text, that none of the messages contains. but: a mark already in use.
std::optional<std::string> unused_mark(const json& messages, std::string_view tools, std::string_view but = {}) {
  for (unsigned char last = 0x90; last <= 0xAF; ++last) {  // U+FDD0 to U+FDEF
    const std::string mark = {static_cast<char>(0xEF), static_cast<char>(0xB7), static_cast<char>(last)};
    bool is_used = mark == but || tools.find(mark) != std::string_view::npos;
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

prompt_builder::prompt_builder(std::shared_ptr<const text::tokenizer> tokenizer, jinja::chat_template chat,
                               std::optional<jinja::chat_template> with_tools)
    : tokenizer_(std::move(tokenizer)), plain_{chat, tool_style::of(chat, input_base())} {
  if (with_tools) with_tools_.emplace(chat_form{*with_tools, tool_style::of(*with_tools, input_base())});
}

result<prompt_builder> prompt_builder::make(std::shared_ptr<const text::tokenizer> tokenizer,
                                            std::optional<std::string> own) {
  const auto& vocab = tokenizer->vocab();
  std::optional<jinja::chat_template> with_tools;
  if (!own && vocab.tool_template()) {
    REDLINE_TRY_ASSIGN(auto parsed, jinja::chat_template::parse(*vocab.tool_template()));
    with_tools = std::move(parsed);
  }
  if (!own) own = vocab.chat_template().value_or(std::string(jinja::chatml_template));
  REDLINE_TRY_ASSIGN(auto chat, jinja::chat_template::parse(std::move(*own)));
  return prompt_builder(std::move(tokenizer), std::move(chat), std::move(with_tools));
}

jinja::chat_input prompt_builder::input_base() const {
  jinja::chat_input input;
  const auto& vocab = tokenizer_->vocab();
  // Templates use them in texts without checking whether they exist.
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
  const chat_form& form = form_for(!tools.is_null());
  const json& shown = tools.is_null() ? form.tools.no_tools() : tools;
  if (!shown.is_null() && (!tools.is_null() || !variables.contains("tools"))) input.variables["tools"] = shown;
  return form.chat.render(input);
}

result<rendered_conversation> prompt_builder::prepare(const json& messages, const tools::tool_set* tools,
                                                      const json& variables) const {
  rendered_conversation out{.messages = messages, .tools = nullptr, .variables = variables, .text = {}, .mark = {}};
  const bool has_tools = tools != nullptr && tools->call != tools::choice::none;
  const tool_style& style = form_for(has_tools).tools;
  if (has_tools) {
    if (const auto why = style.why_no_tools()) return *why;
    out.tools = tool_style::tools_for_template(*tools);
  }
  // As one text, so that the names of members are checked, too.
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
      return failure{
          errc::invalid_argument,
          "the messages contain the text of control tokens and all of the characters U+FDD0 to U+FDEF, one of "
          "which is needed to mark that text; leave one out"};
    }
    out.mark = *mark;
    const auto shield = [&](json& text) { text = tokenizer_->shield(text.get_ref<const std::string&>(), out.mark); };
    visit_texts(out.messages, shield);
    visit_texts(out.variables, shield);
    if (!out.tools.is_null()) {
      REDLINE_TRY_ASSIGN(out.tools, parse_json<json>(tokenizer_->shield(tools_text, out.mark), {.depth_max = 128}));
    }
  }
  REDLINE_TRY_ASSIGN(out.messages, style.messages_for_template(out.messages));
  if (!out.tools.is_null() && !style.shows_tools()) {
    if (out.messages.front()["role"] != "system") {
      out.messages.insert(out.messages.begin(), json{{"role", "system"}, {"content", ""}});
    }
    auto& content = out.messages.front()["content"];
    content = content.get_ref<const std::string&>() + style.introduce(out.tools);
  }
  return out;
}

result<rendered_conversation> prompt_builder::render(const json& messages, bool add_generation_prompt, std::int64_t now,
                                                     const tools::tool_set* tools, const json& variables) const {
  REDLINE_TRY_ASSIGN(auto out, prepare(messages, tools, variables));
  REDLINE_TRY_ASSIGN(out.text, apply_template(out.messages, add_generation_prompt, now, out.tools, out.variables));
  return out;
}

result<rendered_conversation> prompt_builder::render_to_continue(const json& messages, std::int64_t now,
                                                                 const tools::tool_set* tools,
                                                                 const json& variables) const {
  const auto wrong = [](const std::string& why) {
    return failure{errc::invalid_argument, "the last message cannot be continued: " + why};
  };
  REDLINE_TRY_ASSIGN(auto of, prepare(messages, tools, variables));
  if (of.messages.empty()) return wrong("there is no message");
  json& last = of.messages.back();
  if (last["role"] != "assistant" || last.contains("tool_calls") || !last["content"].is_string())
    return wrong("expected an assistant message with content and without tool calls");
  const auto mark = unused_mark(json::array({of.messages, of.variables, of.tools}), {}, of.mark);
  if (!mark) return wrong("expected messages without one of the characters U+FDD0 to U+FDEF, found all of them");
  const std::string content = last["content"].get<std::string>();
  last["content"] = content + *mark;
  REDLINE_TRY_ASSIGN(of.text, apply_template(of.messages, false, now, of.tools, of.variables));
  last["content"] = content;
  const auto at = of.text.rfind(*mark);
  if (at == std::string::npos || of.text.find(*mark) != at)
    return wrong("the model's chat template does not repeat its content once and unchanged");
  of.text.resize(at);
  return of;
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
  REDLINE_TRY_ASSIGN(const auto rendered, render({{{"role", "user"}, {"content", message}}}, true, now));
  return tokens(rendered);
}

}  // namespace redline::actors
