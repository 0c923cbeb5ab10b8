#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/text/document_tokens.hpp"
#include "runtime/text/text_document.hpp"

namespace redline::text {

/// A file while it is being edited: its text, its tokens, and a version that each change must name.
class live_document {
 public:
  /// Fails like `text_document::make`.
  static result<live_document> make(std::shared_ptr<const tokenizer> tokenizer, std::string text, std::int64_t version,
                                    std::size_t bytes_max);

  struct change {
    std::vector<token_splice> splices;  // to be applied one after the other
    std::size_t end = 0;                // the byte after the last edit, where the user types
  };
  /// Applies the edits in order, each to the result of the previous ones, or fails and changes nothing.
  /// version_conflict unless `base` is the current version and `next` a later one; other failures name the edit.
  result<change> apply(std::int64_t base, std::int64_t next, std::span<const text_edit> edits, position_encoding units);

  [[nodiscard]] std::int64_t version() const { return version_; }
  [[nodiscard]] const text_document& document() const { return document_; }
  [[nodiscard]] const std::string& text() const { return document_.text(); }
  [[nodiscard]] std::span<const token> tokens() const { return tokens_.tokens(); }
  [[nodiscard]] std::uint64_t encoded_bytes() const { return tokens_.encoded_bytes(); }
  /// Memory of the text, its lines and its tokens.
  [[nodiscard]] std::size_t held_bytes() const { return document_.held_bytes() + tokens_.held_bytes(); }
  /// What `tokenizer::encode` gives for the text before `offset`, and for the text after it.
  [[nodiscard]] std::vector<token> tokens_before(std::size_t offset) const { return tokens_.before(text(), offset); }
  [[nodiscard]] std::vector<token> tokens_after(std::size_t offset) const { return tokens_.after(text(), offset); }

 private:
  live_document(text_document document, document_tokens tokens, std::int64_t version)
      : document_(std::move(document)), tokens_(std::move(tokens)), version_(version) {}

  text_document document_;
  document_tokens tokens_;
  std::int64_t version_;
};

}  // namespace redline::text
