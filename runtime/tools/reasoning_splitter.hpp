#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace redline::tools {

/// Tells what a model thinks, between the tags of its template, from its answer. What comes out together does not
/// depend on how the text was cut on its way in. Blanks behind a tag belong to neither.
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

  struct parts {
    std::string reasoning;
    std::string answer;
  };
  /// What is known of the text by now.
  [[nodiscard]] parts feed(std::string_view text);
  /// The text ended: what was held back.
  [[nodiscard]] parts finish();
  [[nodiscard]] std::string_view closing_tag() const { return tags_.close; }
  [[nodiscard]] bool is_thinking() const { return where_ == beginning::in_thought; }

 private:
  tags tags_;
  beginning where_ = beginning::answer;
  bool trims_ = false;  // blanks that come now
  std::string held_;    // may become a tag, or stand before one
};

}  // namespace redline::tools
