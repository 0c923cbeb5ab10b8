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

/// New text for a range of bytes. Without `where` it replaces the whole text.
struct byte_edit {
  std::optional<text::byte_range> where;
  std::string text;
  bool operator==(const byte_edit&) const = default;
};

/// Changes from one revision to a later one. Each applies to the result of those before it.
struct change_set {
  std::int64_t base = 0;
  std::int64_t next = 0;
  std::vector<byte_edit> edits;
  bool operator==(const change_set&) const = default;
};

/// A text that is open in an editor, and its changes that were not sent to a server yet. Revisions count changes from
/// 1. They are independent of the editor's versions, which may begin anywhere.
class edited_document {
 public:
  static constexpr std::size_t bytes_max = sizes::edit_file_bytes_max;
  // More unsent changes than these are replaced by the whole text.
  static constexpr std::size_t unsent_edits_max = 128;
  static constexpr std::size_t unsent_bytes_max = 64 << 10;

  explicit edited_document(std::string text);

  /// Null if there is no usable text; `complaint` then gives the reason.
  [[nodiscard]] const text::text_document* document() const { return document_ ? &*document_ : nullptr; }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  [[nodiscard]] std::int64_t revision() const { return revision_; }

  /// Without `where`, replaces the whole text. As the protocol demands, a position after the end means the end.
  void change(const std::optional<text::position_range>& where, std::string text, text::position_encoding units);

  /// Marks the text as unknown, for this reason, until the whole text is set again.
  void lose(std::string why);

  /// True if the server has this revision or is about to get it.
  [[nodiscard]] bool is_sent() const { return sent_ == revision_; }
  /// The changes up to this revision, which then count as sent.
  [[nodiscard]] change_set take_unsent();
  /// Marks the present text as sent in full.
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

/// A name for a document in its own session: the last part of its URI, in letters that need no escape.
std::string session_path(std::string_view uri);

}  // namespace redline::actors::cli::lsp
