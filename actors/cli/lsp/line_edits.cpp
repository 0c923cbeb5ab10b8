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

std::string change_story(std::string_view path, const text::text_document& before, std::string_view after,
                         std::size_t bytes_max) {
  constexpr auto units = text::position_encoding::utf8;
  const auto whole = [](std::string lines) {
    if (!lines.empty() && !lines.ends_with('\n')) lines += '\n';
    return lines;
  };
  std::string story;
  const auto edits = line_edits(before, after, units);
  for (auto one = edits.rbegin(); one != edits.rend(); ++one) {
    const auto begin = before.offset_near(one->where.begin, units), end = before.offset_near(one->where.end, units);
    std::string told = "File: " + std::string(path) + ":\n<<<<<<< ORIGINAL\n";
    told += whole(before.text().substr(begin, end - begin)) + "=======\n" + whole(one->text) + ">>>>>>> UPDATED\n";
    if (story.size() + told.size() > bytes_max) break;
    story.insert(0, told);
  }
  return story;
}

}  // namespace redline::actors::cli::lsp
