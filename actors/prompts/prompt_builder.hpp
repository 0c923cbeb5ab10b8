#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/prompts/tool_style.hpp"
#include "runtime/base/token_range.hpp"
#include "runtime/jinja/chat_template.hpp"
#include "runtime/text/tokenizer.hpp"

namespace redline::actors {

/// A conversation as rendered by a chat template. Where a message contains a control token's text, such as <|im_end|>
/// in a file about tokenizers, a mark breaks it, so that only the template's own control tokens are parsed as such.
struct rendered_conversation {
  nlohmann::ordered_json messages;   // with the marks, and in the template's form
  nlohmann::ordered_json tools;      // with the marks; null if there are none
  nlohmann::ordered_json variables;  // with the marks
  std::string text;                  // with the marks
  std::string mark;                  // empty if no message needed one

  [[nodiscard]] std::string text_without_marks() const;
};

/// What a model reads, as tokens: conversations in the form of its chat template, texts as they are. The server and the
/// command line share it, so that both prompt a model in the same way. Immutable.
class prompt_builder {
 public:
  /// Renders a few small conversations to find out what the templates do with tools. with_tools: for conversations with
  /// tools; if absent, `chat` serves for all.
  prompt_builder(std::shared_ptr<const text::tokenizer> tokenizer, jinja::chat_template chat,
                 std::optional<jinja::chat_template> with_tools = std::nullopt);
  /// Uses the templates of the tokenizer's model, or ChatML where it has none. own: a template to use instead.
  static result<prompt_builder> make(std::shared_ptr<const text::tokenizer> tokenizer,
                                     std::optional<std::string> own = std::nullopt);

  /// messages: {"role", "content"} each, and calls as in generation_request; now: seconds since 1970, for templates
  /// that show a date. tools: shown to the model, unless it is to call none. variables: further template variables, by
  /// name (jinja::chat_input::variables). Fails like chat_template::render, when messages contain control tokens and
  /// use every available mark, and when the template cannot show the tools or the calls.
  [[nodiscard]] result<rendered_conversation> render(
      const nlohmann::ordered_json& messages, bool add_generation_prompt, std::int64_t now,
      const tools::tool_set* tools = nullptr,
      const nlohmann::ordered_json& variables = nlohmann::ordered_json::object()) const;
  /// The same up to the end of the last message, an assistant's with content and without calls, which the answer
  /// continues. Also fails where the template does not show that content once and unchanged.
  [[nodiscard]] result<rendered_conversation> render_to_continue(
      const nlohmann::ordered_json& messages, std::int64_t now, const tools::tool_set* tools = nullptr,
      const nlohmann::ordered_json& variables = nlohmann::ordered_json::object()) const;
  /// How conversations with tools are written.
  [[nodiscard]] const tool_style& tools() const { return form_for(true).tools; }
  [[nodiscard]] const std::string& template_source() const { return plain_.chat.source(); }
  /// The template writes BOS itself when it wants one. Messages are encoded as plain text, whatever they contain.
  [[nodiscard]] std::vector<token> tokens(const rendered_conversation& of) const;
  /// The turns of a conversation that a full window may evict; see `older_turns`.
  [[nodiscard]] std::vector<token_range> turns(const rendered_conversation& of, std::span<const token> prompt,
                                               std::int64_t now) const;
  /// A text to continue: special tokens are parsed, and BOS comes first where the model wants it.
  [[nodiscard]] std::vector<token> text(std::string_view text) const;
  /// A conversation with a single user message that contains a file.
  [[nodiscard]] result<std::vector<token>> message_with_file(std::string_view message, std::int64_t now) const;

 private:
  /// A template, and what it does with tools.
  struct chat_form {
    jinja::chat_template chat;
    tool_style tools;
  };
  [[nodiscard]] const chat_form& form_for(bool has_tools) const {
    return has_tools && with_tools_ ? *with_tools_ : plain_;
  }
  [[nodiscard]] result<std::string> apply_template(
      const nlohmann::ordered_json& messages, bool add_generation_prompt, std::int64_t now,
      const nlohmann::ordered_json& tools = nullptr,
      const nlohmann::ordered_json& variables = nlohmann::ordered_json::object()) const;
  /// Everything except the text.
  [[nodiscard]] result<rendered_conversation> prepare(const nlohmann::ordered_json& messages,
                                                      const tools::tool_set* tools,
                                                      const nlohmann::ordered_json& variables) const;
  /// Everything except the messages.
  [[nodiscard]] jinja::chat_input input_base() const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  chat_form plain_;
  std::optional<chat_form> with_tools_;
};

}  // namespace redline::actors
