#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "runtime/jinja/chat_template.hpp"
#include "runtime/tools/call_format.hpp"
#include "runtime/tools/tool_set.hpp"

namespace redline::actors {

/// What a chat template does with tools, found out by rendering small conversations, and how messages must look for it.
/// Templates differ in what they accept as a call's arguments and as a message that only calls.
class tool_style {
 public:
  /// base: the input common to all renderings; its messages are ignored.
  static tool_style of(const jinja::chat_template& chat, const jinja::chat_input& base);

  /// How the model writes calls; null if the form is unknown.
  [[nodiscard]] const tools::call_format* format() const { return format_; }
  /// The template writes the request's tools into the prompt.
  [[nodiscard]] bool shows_tools() const { return shows_tools_; }
  /// The template writes the calls of earlier messages. Otherwise they are written for it, if the form is known.
  [[nodiscard]] bool shows_calls() const { return shows_calls_; }
  /// The variable `tools` without tools: null, or an empty list for a template that iterates over it unchecked.
  [[nodiscard]] const nlohmann::ordered_json& no_tools() const { return no_tools_; }
  /// Why requests with tools cannot be answered; empty if they can.
  [[nodiscard]] std::optional<failure> why_no_tools() const;

  /// The variable `tools`.
  [[nodiscard]] static nlohmann::ordered_json tools_for_template(const tools::tool_set& set);
  /// What a system message has to say about tools (as `tools_for_template` gives them) where the template does not; it
  /// contains control tokens that are to be parsed as such.
  [[nodiscard]] std::string introduce(const nlohmann::ordered_json& tools) const;
  /// messages: as in generation_request. Fails when there are calls that the template does not show.
  [[nodiscard]] result<nlohmann::ordered_json> messages_for_template(const nlohmann::ordered_json& messages) const;

 private:
  [[nodiscard]] nlohmann::ordered_json message_with_calls(const nlohmann::ordered_json& message) const;
  [[nodiscard]] std::string spell_calls(const nlohmann::ordered_json& calls) const;

  const tools::call_format* format_ = nullptr;
  bool shows_tools_ = false;
  bool shows_calls_ = false;
  bool wants_object_ = true;                    // arguments as an object, not as text
  bool wants_null_ = false;                     // missing content as null, not as an empty text
  bool splits_content_ = false;                 // content next to calls goes into a message of its own
  bool writes_calls_ = false;                   // calls go into the content, in the words of the format
  std::string thoughts_ = "reasoning_content";  // the message member with the model's thoughts
  bool joins_thoughts_ = false;                 // a message with calls may have thoughts or content, not both
  nlohmann::ordered_json no_tools_;
};

}  // namespace redline::actors
