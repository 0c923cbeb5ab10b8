#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/document/text_document.hpp"

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

/// Whether it has lines, and each of them ends with "\r\n".
bool ends_lines_with_crlf(std::string_view text);
/// Each "\r\n" as "\n": what models know best.
std::string with_line_feeds(std::string_view text);
/// `after` with the line ends of `before`, where those are all "\r\n": a change of every line was not asked for.
std::string with_line_ends_of(std::string_view before, std::string after);

}  // namespace redline::actors::cli::lsp
