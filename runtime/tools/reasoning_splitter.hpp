#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/tools/channel_reader.hpp"

namespace redline::tools {

/// Tells what a model thinks, between the tags of its template or in a channel, from its answer. What comes out
/// together does not depend on how the text was cut on its way in. Blanks behind a tag belong to neither.
class reasoning_splitter {
 public:
  enum class beginning : std::uint8_t {
    answer,      // there is no reasoning
    either,      // the text begins with the opening tag, or is the answer
    in_thought,  // the prompt ended with the opening tag
  };
  struct tags {
    std::string_view open, close;  // of static storage
  };
  /// The tags that a template, given as text, writes or looks for; empty ones: none that we know.
  static tags tags_of(std::string_view source);

  reasoning_splitter() = default;
  reasoning_splitter(tags by, beginning where);
  /// Of an answer in channels, after a prompt that ends with this text.
  static reasoning_splitter of_channels(std::string_view prompt);

  struct parts {
    std::string reasoning;
    std::string answer;
  };
  /// What is known of the text by now.
  [[nodiscard]] parts feed(std::string_view text);
  /// The text ended: what was held back.
  [[nodiscard]] parts finish();
  /// A control token's text, in most vocabularies: thoughts end with it.
  [[nodiscard]] std::string_view closing_tag() const { return tags_.close; }
  [[nodiscard]] bool is_thinking() const {
    return channels_ ? channels_->is_reasoning() : where_ == beginning::in_thought;
  }
  /// The text has to have the control tokens in it.
  [[nodiscard]] bool needs_control() const { return channels_.has_value(); }

 private:
  tags tags_;
  beginning where_ = beginning::answer;
  bool trims_ = false;  // blanks that come now
  std::string held_;    // may become a tag, or stand before one
  std::optional<channel_reader> channels_;
};

}  // namespace redline::tools
