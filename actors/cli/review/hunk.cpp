#include "actors/cli/review/hunk.hpp"

#include <algorithm>

#include "runtime/base/hex.hpp"
#include "runtime/base/terminal_text.hpp"

namespace redline::actors::cli {
namespace {

using kind = text::diff_line::kind;

constexpr std::string_view no_line_feed = "\\ No newline at end of file\n";
constexpr std::size_t shown_bytes_max = 80;

char sign_of(kind what) { return what == kind::kept ? ' ' : what == kind::added ? '+' : '-'; }

std::size_t count(const hunk& h, kind without) {
  return static_cast<std::size_t>(
      std::count_if(h.lines.begin(), h.lines.end(), [&](const hunk_line& l) { return l.what != without; }));
}

/// A heading's range, such as "12,3". An empty range names the line before it.
std::string range(std::size_t begin, std::size_t lines) {
  return std::to_string(lines == 0 ? begin : begin + 1) + (lines == 1 ? "" : "," + std::to_string(lines));
}

/// Quotes a name as git does if a patch could not contain it otherwise.
std::string quoted_name(const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(),
                                    [](unsigned char c) { return c >= 0x20 && c < 0x7F && c != '"' && c != '\\'; });
  if (is_plain) return name.find(' ') == std::string::npos ? name : name + "\t";
  std::string out = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out.append({'\\', c});
    else if (byte >= 0x20 && byte < 0x7F)
      out.push_back(c);
    else
      out.append({'\\', static_cast<char>('0' + (byte >> 6)), static_cast<char>('0' + (byte >> 3 & 7)),
                  static_cast<char>('0' + (byte & 7))});
  }
  return out + "\"";
}

std::vector<std::string> old_side(const hunk& h) {
  std::vector<std::string> out;
  for (const hunk_line& l : h.lines) {
    if (l.what != kind::added) out.push_back(l.text);
  }
  return out;
}

}  // namespace

std::size_t hunk::old_count() const { return count(*this, kind::added); }
std::size_t hunk::new_count() const { return count(*this, kind::removed); }

std::vector<hunk> hunks_of(std::string_view before, std::string_view after, std::size_t context) {
  const auto all = text::diff_lines(before, after);
  std::vector<bool> shown(all.size(), false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].what == kind::kept) continue;
    for (std::size_t j = i - std::min(i, context); j < std::min(all.size(), i + context + 1); ++j) shown[j] = true;
  }
  std::vector<hunk> out;
  std::size_t old_line = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (shown[i] && (i == 0 || !shown[i - 1])) out.push_back({old_line, {}});
    if (shown[i]) out.back().lines.push_back({all[i].what, std::string(all[i].text)});
    if (all[i].what != kind::added) ++old_line;
  }
  return out;
}

std::string with_hunks(std::string_view before, const std::vector<hunk>& taken) {
  const auto lines = text::split_lines(before);
  std::string out;
  std::size_t at = 0;
  for (const hunk& h : taken) {
    for (; at < h.begin; ++at) out += lines[at];
    for (const hunk_line& l : h.lines) {
      if (l.what != kind::removed) out += l.text;
    }
    at += h.old_count();
  }
  for (; at < lines.size(); ++at) out += lines[at];
  return out;
}

std::string body_of(const hunk& h, bool colour) {
  std::string out;
  for (const hunk_line& l : h.lines) {
    std::string_view body = l.text;
    const bool ends = body.ends_with('\n');
    if (ends) body.remove_suffix(1);
    const char* start = !colour || l.what == kind::kept ? "" : l.what == kind::added ? "\033[32m" : "\033[31m";
    out += start + std::string(1, sign_of(l.what)) + (colour ? shown_on_terminal(body) : std::string(body)) +
           (*start != 0 ? "\033[0m" : "") + "\n";
    if (!ends) out += no_line_feed;
  }
  return out;
}

std::string heading_of(const hunk& h, std::ptrdiff_t grown) {
  const auto new_begin = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(h.begin) + grown);
  return "@@ -" + range(h.begin, h.old_count()) + " +" + range(new_begin, h.new_count()) + " @@";
}

std::string patch_of(const std::string& path, const std::vector<hunk>& taken, bool colour) {
  if (taken.empty()) return {};
  // Without a "diff --git" line, because git would then take the path from the top of the repository.
  std::string out = "--- " + quoted_name("a/" + path) + "\n+++ " + quoted_name("b/" + path) + "\n";
  std::ptrdiff_t grown = 0;
  for (const hunk& h : taken) {
    out += heading_of(h, grown) + "\n" + body_of(h, colour);
    grown += static_cast<std::ptrdiff_t>(h.new_count()) - static_cast<std::ptrdiff_t>(h.old_count());
  }
  return out;
}

result<hunk> read_body(const hunk& h, std::string_view body) {
  hunk out{h.begin, {}};
  for (const std::string_view line : text::split_lines(body)) {
    if (line.starts_with('#') || line.starts_with("@@")) continue;
    if (line.starts_with('\\')) {
      if (!out.lines.empty() && out.lines.back().text.ends_with('\n')) out.lines.back().text.pop_back();
      continue;
    }
    const bool is_empty_line = line == "\n" || line == "\r\n";  // editors strip the space of an empty line
    const char sign = is_empty_line ? ' ' : line.front();
    if (sign != ' ' && sign != '+' && sign != '-') {
      return failure{errc::invalid_argument, "expected each line to begin with ' ', '-', '+' or '#', found " +
                                                 quote_bytes(line, shown_bytes_max)};
    }
    std::string rest(is_empty_line ? line : line.substr(1));
    if (!rest.ends_with('\n')) rest.push_back('\n');  // editors may drop the last one; a '\' line marks a missing one
    out.lines.push_back({sign == ' ' ? kind::kept : sign == '+' ? kind::added : kind::removed, std::move(rest)});
  }
  if (out.lines.empty()) return failure{errc::invalid_argument, "expected a hunk, found no lines"};
  const auto wanted = old_side(h);
  const auto found = old_side(out);
  if (wanted != found) {
    const auto at = std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end());
    const auto show = [&](const auto& where, const auto& end) {
      return where == end ? std::string("the end of the hunk") : quote_bytes(*where, shown_bytes_max);
    };
    return failure{errc::invalid_argument, "the lines with ' ' and '-' must match those of the file: expected " +
                                               show(at.first, wanted.end()) + ", found " +
                                               show(at.second, found.end())};
  }
  return out;
}

}  // namespace redline::actors::cli
