#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::text {

/// Cuts text into the pieces inside which byte-pair merging works. The pieces joined are the text: bytes that are not
/// UTF-8 come out too, each run of them as a piece of its own. Safe to use from several threads.
class pretokenizer {
 public:
  /// `name` as `tokenizer.ggml.pre` spells it; unsupported_format for one that Redline does not know.
  static result<pretokenizer> make(std::string_view name);

  /// True when every text splits between these two bytes, into the pieces that its parts split into alone: after an
  /// ASCII letter or digit and before white space. A run of letters or digits ends there under each of the expressions;
  /// none of them looks back, nor further ahead than a run of white space.
  static bool always_cuts(char left, char right);

  /// Appends the pieces of `text`, views into it, none of them empty.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  class pattern;

  void split_valid(std::string_view text, std::vector<std::string_view>& pieces) const;

  /// Applied one after the other, each inside the pieces of the one before; what a pattern leaves out between its
  /// matches is a piece as well.
  std::vector<std::shared_ptr<const pattern>> patterns_;
};

}  // namespace redline::text
