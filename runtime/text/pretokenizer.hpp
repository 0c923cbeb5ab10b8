#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::text {

/// Cuts text into the pieces inside which byte-pair merging works. The joined pieces equal the text: invalid UTF-8 is
/// included, each span of it as a separate piece. Thread-safe.
class pretokenizer {
 public:
  /// `name` is a value of `tokenizer.ggml.pre`; unsupported_format for an unknown one.
  static result<pretokenizer> make(std::string_view name);

  /// True if every text splits between these two bytes, into the pieces into which its parts split alone: after an
  /// ASCII letter or digit and before whitespace. A span of letters or digits ends there under each of the expressions.
  /// None of them looks back, or further ahead than a span of whitespace.
  static bool always_cuts(char left, char right);

  /// Appends the pieces of `text`, views into it, none of them empty.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  class pattern;

  void split_valid(std::string_view text, std::vector<std::string_view>& pieces) const;

  /// Applied one after the other, each inside the pieces of the previous one. The text between a pattern's matches is a
  /// piece as well.
  std::vector<std::shared_ptr<const pattern>> patterns_;
};

}  // namespace redline::text
