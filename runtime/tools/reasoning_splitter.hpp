#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/tools/channel_reader.hpp"

namespace redline::tools {

/// Separates a model's reasoning, between the tags of its template or in a channel, from its answer. The joined output
/// does not depend on how the text was divided. Whitespace after a tag belongs to neither.
class reasoning_splitter {
 public:
  enum class beginning : std::uint8_t {
    answer,      // there is no reasoning
    either,      // the text begins with the opening tag, or is the answer
    in_thought,  // the prompt ended with the opening tag
  };
  struct tags {
    std::string_view open, close;  // static storage duration
  };
  /// The tags that a template's source writes or searches for; empty if it has no known ones.
  static tags tags_of(std::string_view source);

  reasoning_splitter() = default;
  reasoning_splitter(tags by, beginning where);
  /// A splitter for an answer with channels, after a prompt that ends with this text.
  static reasoning_splitter of_channels(std::string_view prompt);

  struct parts {
    std::string reasoning;
    std::string answer;
  };
  /// Returns what is certain of the text by now.
  [[nodiscard]] parts feed(std::string_view text);
  /// Ends the text: returns what was delayed.
  [[nodiscard]] parts finish();
  /// The text that ends reasoning; a control token in most vocabularies.
  [[nodiscard]] std::string_view closing_tag() const { return tags_.close; }
  [[nodiscard]] bool is_thinking() const {
    return channels_ ? channels_->is_reasoning() : where_ == beginning::in_thought;
  }
  /// Whether the text must contain control tokens.
  [[nodiscard]] bool needs_control() const { return channels_.has_value(); }

 private:
  tags tags_;
  beginning where_ = beginning::answer;
  bool trims_ = false;  // drops whitespace that comes now
  std::string held_;    // may become a tag, or precede one
  std::optional<channel_reader> channels_;
};

}  // namespace redline::tools
