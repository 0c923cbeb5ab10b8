#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/editing/edit_memory.hpp"
#include "actors/messages/edit_messages.hpp"
#include "runtime/base/outcome.hpp"
#include "runtime/text/live_document.hpp"

namespace redline::actors {

/// The files of an edit session and the prompts for completions in them. Knows the files' tokens and nothing about KV.
class workspace {
 public:
  struct options {
    edit_limits limits;
    text::position_encoding units = text::position_encoding::utf16;
    std::uint32_t context_max = 0;
  };
  struct file {
    std::string path;
    text::live_document document;
  };

  /// memory: counts what the files use.
  workspace(std::shared_ptr<const text::tokenizer> tokenizer, options how, edit_memory::claim memory = {})
      : tokenizer_(std::move(tokenizer)), how_(how), memory_(std::move(memory)) {}

  /// A new file, or a later version of one.
  std::optional<refusal> put(const std::string& path, const std::string& text, std::int64_t version);
  std::optional<refusal> drop(const std::string& path);
  /// Returns the token edits, in order; afterwards the cursor is where the user is typing.
  outcome<std::vector<text::token_splice>, refusal> patch(const patch_file& change);

  /// What the model reads for a completion at a position.
  struct layout {
    std::vector<token> prompt;
    std::vector<token> behind;  // the rest of the file, as far as it fits into the context after the prompt
    std::vector<std::string> stops;
  };
  /// Fails when there is no such position. A quarter of the context is left for the answer. Of a longer text, the lines
  /// next to the position are read. With fim, the text after the position may fill a quarter of the context. Other
  /// files come first, in the order they were opened, while they fit and where the model has a token that separates
  /// files.
  [[nodiscard]] outcome<layout, refusal> lay_out(const completion_place& where) const;
  /// The layout of the most likely next completion: at the cursor, in the mode of the last one. Empty until a file is
  /// touched.
  [[nodiscard]] std::optional<layout> expected() const;

  [[nodiscard]] outcome<const file*, refusal> find(const std::string& path,
                                                   std::optional<std::int64_t> version = {}) const;
  [[nodiscard]] const std::vector<file>& files() const { return files_; }
  /// Bytes of one file's text, 0 if there is no such file; and of all texts together.
  [[nodiscard]] std::size_t bytes(const std::string& path) const;
  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] const options& how() const { return how_; }
  /// Sets the context, which the model's memory may limit further than expected.
  void limit_context(std::uint32_t tokens_max) { how_.context_max = tokens_max; }
  /// Remembers what was asked, for `expected`.
  void note_place(const completion_place& where);

 private:
  struct cursor {
    std::string path;
    std::size_t offset = 0;
  };

  /// Claims the memory of `next` instead of that of `old`. Both may be null.
  std::optional<refusal> claim(const text::live_document* old, const text::live_document* next);
  [[nodiscard]] result<std::size_t> offset_of(const file& in, const file_place& place) const;
  [[nodiscard]] layout lay_out_at(const file& in, std::size_t offset, completion_mode mode) const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  options how_;
  edit_memory::claim memory_;
  std::vector<file> files_;  // in the order they were opened
  std::optional<cursor> cursor_;
  std::optional<completion_mode> mode_;
};

}  // namespace redline::actors
