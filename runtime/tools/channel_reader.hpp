#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::tools {

/// Splits an answer with channels (OpenAI's harmony) while it is streamed:
///
///     <|channel|>NAME<|message|>TEXT<|end|><|start|>assistant<|channel|>NAME<|message|>TEXT...
///
/// The channel "analysis" is reasoning, other channels are the answer. The joined output does not depend on how the
/// text was divided.
class channel_reader {
 public:
  struct part {
    bool is_reasoning = false;
    std::string text;
  };

  /// Returns the text that is certain by now, in order.
  [[nodiscard]] std::vector<part> feed(std::string_view text);
  /// Ends the text: returns what was delayed. A truncated header is dropped.
  [[nodiscard]] std::vector<part> finish();

  /// Drops the current header, because it belongs to a call.
  void drop_header();
  [[nodiscard]] bool is_reasoning() const { return !in_header_ && is_reasoning_; }
  /// The token that ends a message.
  static constexpr std::string_view message_end = "<|end|>";

 private:
  void take(char byte);
  void say(std::string_view text);

  std::vector<part> out_;
  std::string held_;  // the header, or the part of a message that may be the token that ends it
  bool in_header_ = true;
  bool is_reasoning_ = false;
};

}  // namespace redline::tools
