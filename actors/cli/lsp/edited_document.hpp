#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/size_limits.hpp"
#include "runtime/text/text_document.hpp"

namespace redline::actors::cli::lsp {

/// New text in the place of some bytes; absent: of the whole text.
struct byte_edit {
  std::optional<text::byte_range> where;
  std::string text;
  bool operator==(const byte_edit&) const = default;
};

/// Changes that lead from one revision to a later one, each to the outcome of those before it.
struct change_set {
  std::int64_t base = 0;
  std::int64_t next = 0;
  std::vector<byte_edit> edits;
  bool operator==(const change_set&) const = default;
};

/// A text that is open in an editor, and what of its changes a server has not been sent yet. Revisions count changes
/// from 1; they are our own, because an editor's versions may begin anywhere.
class edited_document {
 public:
  static constexpr std::size_t bytes_max = sizes::edit_file_bytes_max;
  // More changes than these wait as one: the whole text.
  static constexpr std::size_t unsent_edits_max = 128;
  static constexpr std::size_t unsent_bytes_max = 64 << 10;

  explicit edited_document(std::string text);

  /// Null when there is no text to work with, and `complaint` says why.
  [[nodiscard]] const text::text_document* document() const { return document_ ? &*document_ : nullptr; }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  [[nodiscard]] std::int64_t revision() const { return revision_; }

  /// Absent: the whole text. As the protocol wants it, a position after the end is the end.
  void change(const std::optional<text::position_range>& where, std::string text, text::position_encoding units);

  /// Its text is not known any more, and this says why; until it is told as a whole again.
  void lose(std::string why);

  /// The server has, or will have, this revision.
  [[nodiscard]] bool is_sent() const { return sent_ == revision_; }
  /// What leads there, which counts as sent from now on.
  [[nodiscard]] change_set take_unsent();
  /// The server gets the text as it is now.
  void mark_sent();

 private:
  void set_whole(std::string text);

  std::optional<text::text_document> document_;
  std::string complaint_;
  std::int64_t revision_ = 1;
  std::int64_t sent_ = 0;
  std::vector<byte_edit> unsent_;
  std::size_t unsent_bytes_ = 0;
  bool unsent_whole_ = false;
};

/// A name for a document in a session of its own: the last part of its URI, of letters that need no escape.
std::string session_path(std::string_view uri);

}  // namespace redline::actors::cli::lsp
