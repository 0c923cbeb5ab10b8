#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.hpp"

namespace redline::text {

/// A change of a token sequence: `insert` replaces `remove_count` tokens from `at` on.
struct token_splice {
  std::uint32_t at = 0;
  std::uint32_t remove_count = 0;
  std::vector<token> insert;

  [[nodiscard]] bool empty() const { return remove_count == 0 && insert.empty(); }
  bool operator==(const token_splice&) const = default;
};

/// The tokens of a text that is being edited: always equal to `tokenizer::encode` of the current text. The text is
/// divided into chunks at positions where the tokenizer's `cuts_between` guarantees that the tokens of the parts equal
/// those of the whole; an edit encodes only the chunks that it touches. A text without such positions is one chunk.
class document_tokens {
 public:
  document_tokens(std::shared_ptr<const tokenizer> tokenizer, std::string_view text);

  /// Follows an edit of the text: `inserted_bytes` bytes replaced `removed_bytes` bytes at `at`, and `text` is the
  /// result. The splice is trimmed at both ends; it is empty if no token changed.
  token_splice replace(std::string_view text, std::size_t at, std::size_t removed_bytes, std::size_t inserted_bytes);

  [[nodiscard]] std::span<const token> tokens() const { return tokens_; }
  /// The number of bytes that all edits so far had to encode: their cost.
  [[nodiscard]] std::uint64_t encoded_bytes() const { return encoded_bytes_; }
  [[nodiscard]] std::size_t held_bytes() const {
    return tokens_.capacity() * sizeof(token) + chunks_.capacity() * sizeof(chunk);
  }
  /// What `encode` gives for the first `bytes` bytes of `text`, which must be the current text.
  [[nodiscard]] std::vector<token> before(std::string_view text, std::size_t bytes) const;
  /// What `encode` gives for all but the first `bytes` bytes.
  [[nodiscard]] std::vector<token> after(std::string_view text, std::size_t bytes) const;

 private:
  struct chunk {
    std::uint32_t bytes = 0;  // at least 1
    std::uint32_t tokens_count = 0;
  };
  struct place {
    std::size_t chunk = 0;
    std::size_t byte = 0;   // where the chunk begins
    std::size_t token = 0;  // index of its first token
  };

  /// The last chunk that begins before `offset`, or the first.
  [[nodiscard]] place find_before(std::size_t offset) const;
  /// Appends the chunks of text[begin, end), which begins and ends at cuts or the text's ends.
  void encode_chunks(std::string_view text, std::size_t begin, std::size_t end, std::vector<chunk>& chunks,
                     std::vector<token>& tokens) const;

  std::shared_ptr<const tokenizer> tokenizer_;
  std::vector<chunk> chunks_;
  std::vector<token> tokens_;
  std::size_t bytes_ = 0;
  std::uint64_t encoded_bytes_ = 0;
};

}  // namespace redline::text
