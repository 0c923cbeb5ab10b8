#include "actors/cli/lsp/line_edits.hpp"

#include <utility>

#include "runtime/text/line_diff.hpp"

namespace redline::actors::cli::lsp {

std::vector<line_edit> line_edits(const text::text_document& before, std::string_view after,
                                  text::position_encoding units) {
  using kind = text::diff_line::kind;
  std::vector<line_edit> out;
  std::size_t at = 0;     // position in the old text
  std::size_t begin = 0;  // start of the change being collected
  std::string added;
  const auto finish = [&] {
    if (begin == at && added.empty()) return;
    out.push_back({{before.position_of(begin, units), before.position_of(at, units)}, std::exchange(added, {})});
  };
  for (const auto& line : text::diff_lines(before.text(), after)) {
    if (line.what == kind::kept) {
      finish();
      begin = at + line.text.size();
    }
    if (line.what == kind::added)
      added += line.text;
    else
      at += line.text.size();
  }
  finish();
  return out;
}

}  // namespace redline::actors::cli::lsp
