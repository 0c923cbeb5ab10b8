#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redline::text {

/// What a value of `tokenizer.ggml.pre` stands for.
struct pretokenizer_kind {
  std::string_view name;
  /// PCRE2 expressions, applied one after the other (pretokenizer.hpp).
  std::span<const std::string_view> patterns;
  /// A piece that is a token as it stands is that token, whatever merging would give ("ignore_merges").
  bool whole_pieces_first = false;
  /// A text begins with the token for its beginning, where the file does not say.
  bool adds_bos = false;
};

/// nullptr for a name that Redline does not know.
[[nodiscard]] const pretokenizer_kind* find_pretokenizer(std::string_view name);
/// All names, quoted, for a message.
[[nodiscard]] std::string known_pretokenizers();

}  // namespace redline::text
