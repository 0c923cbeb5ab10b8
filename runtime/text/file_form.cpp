#include "runtime/text/file_form.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "runtime/base/utf8.hpp"
#include "runtime/text/line_diff.hpp"

namespace redline::text {
namespace {

constexpr std::string_view mark = "\xEF\xBB\xBF";
// Versions of a file with mixed line ends are compared by at most this many differences. Beyond it, the lines in the
// middle get their ends by their content.
constexpr std::ptrdiff_t differences_max = 256;

struct line {
  std::string_view content;
  std::string_view end;  // "\n" with preceding carriage returns; empty for a last line without one
};

std::vector<line> lines_of(std::string_view bytes) {
  std::vector<line> out;
  for (const std::string_view whole : split_lines(bytes)) {
    std::size_t size = whole.size();
    if (whole.ends_with('\n')) {
      --size;
      while (size > 0 && whole[size - 1] == '\r') --size;
    }
    out.push_back({whole.substr(0, size), whole.substr(size)});
  }
  return out;
}

std::string_view without_mark(std::string_view bytes) {
  if (bytes.starts_with(mark)) bytes.remove_prefix(mark.size());
  return bytes;
}

std::string with_line_feeds(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  for (const line& one : lines_of(bytes)) {
    out += one.content;
    if (!one.end.empty()) out += '\n';
  }
  return out;
}

/// The line end of all lines that have one; nullopt if they differ. "\n" if no line has one.
std::optional<std::string_view> common_end(const std::vector<line>& lines) {
  std::optional<std::string_view> found;
  for (const line& one : lines) {
    if (one.end.empty() || found == one.end) continue;
    if (found) return std::nullopt;
    found = one.end;
  }
  return found.value_or("\n");
}

/// The line end of each content in a file; empty if there are several.
std::map<std::string_view, std::string_view> known_ends(const std::vector<line>& lines) {
  std::map<std::string_view, std::string_view> out;
  for (const line& one : lines) {
    if (one.end.empty()) continue;
    const auto [at, is_new] = out.emplace(one.content, one.end);
    if (!is_new && at->second != one.end) at->second = {};
  }
  return out;
}

/// `after` must have only line feeds.
std::string with_ends_of(const std::vector<line>& before, const std::string& shown, const std::string& after) {
  const auto known = known_ends(before);
  std::string_view last = before.front().end;
  std::string out;
  std::size_t at = 0;  // index in the old file
  for (const diff_line& d : diff_lines(shown, after, differences_max)) {
    if (d.what == diff_line::kind::removed) {
      if (!before[at].end.empty()) last = before[at].end;
      ++at;
      continue;
    }
    std::string_view content = d.text;
    const bool ends = content.ends_with('\n');
    if (ends) content.remove_suffix(1);
    if (d.what == diff_line::kind::kept) {
      if (ends) last = before[at].end;
      ++at;
    } else if (const auto found = known.find(content); found != known.end() && !found->second.empty()) {
      last = found->second;
    }
    out += content;
    if (ends) out += last;
  }
  return out;
}

}  // namespace

std::optional<std::string> text_complaint(std::string_view bytes) {
  const auto zero = bytes.find('\0');
  const std::size_t good = utf8::valid_prefix_bytes(bytes.substr(0, std::min(zero, bytes.size())));
  if (good == bytes.size()) return std::nullopt;
  char what[64];
  std::snprintf(what, sizeof what, "not text in UTF-8 (byte %zu is %02X)", good,
                static_cast<unsigned char>(bytes[good]));
  return what;
}

std::string shown_text(std::string_view bytes) { return with_line_feeds(without_mark(bytes)); }

std::string with_form_of(std::string_view before, std::string_view after) {
  const bool has_mark = before.starts_with(mark);
  const auto old_lines = lines_of(without_mark(before));
  // A model may write the mark although it was not shown one.
  const bool writes_mark = has_mark && !without_mark(before).starts_with(mark);
  std::string text = writes_mark ? shown_text(after) : with_line_feeds(after);
  if (!old_lines.empty()) {
    const bool ends = !old_lines.back().end.empty();
    if (!ends && text.ends_with('\n')) text.pop_back();
    if (ends && !text.empty() && !text.ends_with('\n')) text += '\n';
  }
  std::string out(has_mark ? mark : std::string_view());
  const auto end = common_end(old_lines);
  if (!end) return out + with_ends_of(old_lines, shown_text(before), text);
  if (*end == "\n") return out + text;
  for (const char c : text) {
    if (c == '\n')
      out += *end;
    else
      out += c;
  }
  return out;
}

}  // namespace redline::text
