#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/text_document.hpp"

namespace redline::actors::cli::lsp {

/// New text in the place of a range of an older text's positions.
struct line_edit {
  text::position_range where;
  std::string text;
  bool operator==(const line_edit&) const = default;
};

/// What leads from a text to another: whole lines that differ, no others, in order; none overlaps another.
std::vector<line_edit> line_edits(const text::text_document& before, std::string_view after,
                                  text::position_encoding units);

}  // namespace redline::actors::cli::lsp
