#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/http/openai/edit_request.hpp"
#include "runtime/document/live_document.hpp"

namespace redline::actors {

/// The files of an edit session and what a model reads of them. Knows no tokens but the files' own and no KV.
class workspace {
 public:
  struct options {
    api::edit_limits limits;
    text::position_encoding units = text::position_encoding::utf16;
    std::uint32_t context_max = 0;
  };
  struct file {
    std::string path;
    text::live_document document;
  };

  workspace(std::shared_ptr<const text::tokenizer> tokenizer, options how)
      : tokenizer_(std::move(tokenizer)), how_(how) {}

  /// A new file, or a later version of one.
  std::optional<api::api_error> put(const api::opened_file& given);
  std::optional<api::api_error> drop(const std::string& path);
  /// The token edits, one after the other; afterwards `cursor` is where somebody types.
  api::answer<std::vector<text::token_splice>> patch(const std::string& path, const api::patch_request& request);

  /// What the model reads to go on at a place.
  struct layout {
    std::vector<token> prompt;
    std::vector<std::string> stops;
    std::int64_t version = 0;
  };
  /// Fails when the place is none. A quarter of the context is left for the answer: of a longer text the lines next to
  /// the place are read. With fim, of what is behind as much is read as a quarter of the context holds. Other files are
  /// read in front, in the order they were opened, while they fit and where the model has a token that separates files.
  [[nodiscard]] api::answer<layout> lay_out(const api::place_request& where) const;
  /// For the completion that is most likely wanted next: at the cursor, in the mode of the last one. Nothing while no
  /// file was touched.
  [[nodiscard]] std::optional<layout> expected() const;

  [[nodiscard]] api::answer<const file*> find(const std::string& path, std::optional<std::int64_t> version = {}) const;
  [[nodiscard]] const std::vector<file>& files() const { return files_; }
  [[nodiscard]] const options& how() const { return how_; }
  /// Remembers what was asked, for `expected`.
  void note_place(const api::place_request& where);

 private:
  struct cursor {
    std::string path;
    std::size_t offset = 0;
  };

  [[nodiscard]] std::size_t bytes() const;
  [[nodiscard]] result<std::size_t> offset_of(const file& in, const api::file_place& place) const;
  [[nodiscard]] std::size_t first_read(std::span<const token> before, std::size_t most) const;
  [[nodiscard]] layout lay_out_at(const file& in, std::size_t offset, api::completion_mode mode) const;
  void append_header(const file& of, std::vector<token>& out) const;

  std::shared_ptr<const text::tokenizer> tokenizer_;
  options how_;
  std::vector<file> files_;  // in the order they were opened
  std::optional<cursor> cursor_;
  std::optional<api::completion_mode> mode_;
};

}  // namespace redline::actors
