#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/token_range.hpp"
#include "runtime/jinja/chat_template.hpp"
#include "runtime/tokenizer/tokenizer.hpp"

namespace redline::actors {

/// What a model reads, as tokens: conversations in the form of its chat template, texts as they are. The server and the
/// command line share it, so that both ask a model the same. Immutable.
class prompt_builder {
 public:
  prompt_builder(std::shared_ptr<const text::tokenizer> tokenizer, jinja::chat_template chat);
  /// With the template of the tokenizer's model, or ChatML where it has none.
  static result<prompt_builder> make(std::shared_ptr<const text::tokenizer> tokenizer);

  /// messages: {"role", "content"} each; now: seconds since 1970, for templates that show a date. Fails as
  /// chat_template::render.
  [[nodiscard]] result<std::string> render(const nlohmann::ordered_json& messages, bool add_generation_prompt,
                                           std::int64_t now) const;
  /// A rendered conversation. The template writes BOS itself when it wants one; special tokens are parsed.
  [[nodiscard]] std::vector<token> conversation(std::string_view rendered) const;
  /// The turns of a rendered conversation that may leave a full window; see `older_turns`.
  [[nodiscard]] std::vector<token_range> turns(const nlohmann::ordered_json& messages, std::string_view rendered,
                                               std::span<const token> prompt, std::int64_t now) const;
  /// A text to go on with: special tokens are parsed, BOS is put in front where the model wants it.
  [[nodiscard]] std::vector<token> text(std::string_view text) const;
  /// A conversation of one user's message that holds a file. The tokens are those of `conversation`, but that bytes
  /// which spell a special token, or are no UTF-8, are tokens of text here.
  [[nodiscard]] result<std::vector<token>> message_with_file(std::string_view message, std::int64_t now) const;

 private:
  std::shared_ptr<const text::tokenizer> tokenizer_;
  jinja::chat_template chat_;
};

}  // namespace redline::actors
