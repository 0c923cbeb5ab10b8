#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/text_document.hpp"

namespace redline::actors::cli::lsp {

/// New text for a range of positions in an older text.
struct line_edit {
  text::position_range where;
  std::string text;
  bool operator==(const line_edit&) const = default;
};

/// The edits from one text to another: only whole differing lines, in order and without overlap.
std::vector<line_edit> line_edits(const text::text_document& before, std::string_view after,
                                  text::position_encoding units);

/// What was changed in a file, hunk by hunk, as a next-edit model is told: the path, the old lines and the new ones
/// between conflict markers. Only the last hunks that fit.
std::string change_story(std::string_view path, const text::text_document& before, std::string_view after,
                         std::size_t bytes_max);

}  // namespace redline::actors::cli::lsp
