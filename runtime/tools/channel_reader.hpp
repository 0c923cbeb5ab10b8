#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace redline::tools {

/// Takes an answer in channels (OpenAI's harmony) apart, as it comes:
///
///     <|channel|>NAME<|message|>TEXT<|end|><|start|>assistant<|channel|>NAME<|message|>TEXT...
///
/// The channel "analysis" is reasoning, others are said. What comes out together does not depend on how the text was
/// cut.
class channel_reader {
 public:
  struct part {
    bool is_reasoning = false;
    std::string text;
  };

  /// What is known of the text by now, in order.
  [[nodiscard]] std::vector<part> feed(std::string_view text);
  /// The text ended: what was held back. A header that was cut is no text.
  [[nodiscard]] std::vector<part> finish();

  /// Forgets the header that it is in: it was one of a call.
  void drop_header();
  [[nodiscard]] bool is_reasoning() const { return !in_header_ && is_reasoning_; }
  /// Ends a message.
  static constexpr std::string_view message_end = "<|end|>";

 private:
  void take(char byte);
  void say(std::string_view text);

  std::vector<part> out_;
  std::string held_;  // the header, or of a message what may be the token that ends it
  bool in_header_ = true;
  bool is_reasoning_ = false;
};

}  // namespace redline::tools
