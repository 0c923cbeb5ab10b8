#include "actors/cli/lsp/line_edits.hpp"

#include <utility>

#include "runtime/document/line_diff.hpp"

namespace redline::actors::cli::lsp {

std::vector<line_edit> line_edits(const text::text_document& before, std::string_view after,
                                  text::position_encoding units) {
  using kind = text::diff_line::kind;
  std::vector<line_edit> out;
  std::size_t at = 0;     // in the old text
  std::size_t begin = 0;  // of the change that is being collected
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

bool ends_lines_with_crlf(std::string_view text) {
  bool has_lines = false;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    if (at == 0 || text[at - 1] != '\r') return false;
    has_lines = true;
  }
  return has_lines;
}

std::string with_line_feeds(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '\n' && out.ends_with('\r')) out.pop_back();
    out.push_back(c);
  }
  return out;
}

std::string with_line_ends_of(std::string_view before, std::string after) {
  if (!ends_lines_with_crlf(before)) return after;
  std::string out;
  out.reserve(after.size());
  for (const char c : after) {
    if (c == '\n' && !out.ends_with('\r')) out.push_back('\r');
    out.push_back(c);
  }
  return out;
}

}  // namespace redline::actors::cli::lsp
