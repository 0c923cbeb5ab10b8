#pragma once

#include <span>
#include <string>
#include <string_view>

namespace redline::text {

/// The meaning of a value of `tokenizer.ggml.pre`.
struct pretokenizer_kind {
  std::string_view name;
  /// PCRE2 expressions, applied one after the other (pretokenizer.hpp).
  std::span<const std::string_view> patterns;
  /// Whether a piece that is itself a token becomes that token, whatever merging would give ("ignore_merges").
  bool whole_pieces_first = false;
  /// Whether a text begins with the BOS token if the file does not say.
  bool adds_bos = false;
};

/// nullptr for an unknown name.
[[nodiscard]] const pretokenizer_kind* find_pretokenizer(std::string_view name);
/// All names, quoted, for a message.
[[nodiscard]] std::string known_pretokenizers();

}  // namespace redline::text
