#include "runtime/formats/recognise.hpp"

#include <algorithm>
#include <utility>

#include "runtime/formats/elision.hpp"
#include "runtime/formats/format_table.hpp"

namespace redline::formats {
namespace {

constexpr span_of_bytes not_found{nowhere, nowhere};

span_of_bytes last_marker(text_scanner& in, const marker& mark, std::size_t begin, std::size_t end) {
  std::size_t at = end;
  while ((at = in.last(mark.text, begin, at)) != nowhere) {
    if (mark.before.empty()) return {at, at + mark.text.size()};
    const std::size_t gap = in.before_whitespace(begin, at);
    if (in.text().substr(begin, gap - begin).ends_with(mark.before)) {
      return {gap - mark.before.size(), at + mark.text.size()};
    }
  }
  return not_found;
}

/// Whether a line starts at `at`, or text of a chat template ends there: "<|im_start|>user\n", "<|User|>", "[INST] ".
bool is_start(std::string_view text, std::size_t at) {
  if (at > 1 && text[at - 1] == ' ') --at;
  return at == 0 || text[at - 1] == '\n' || text[at - 1] == '>' || text[at - 1] == ']';
}

span_of_bytes first_marker(text_scanner& in, const marker& mark, std::size_t begin, std::size_t end) {
  for (std::size_t at = begin; (at = in.first(mark.text, at, end)) != nowhere; at += mark.text.size()) {
    if (mark.which == marker::choice::first || is_start(in.text(), at)) return {at, at + mark.text.size()};
  }
  return not_found;
}

/// Finds the markers: those that are the last of their kind from the end of the prompt, then the others between them.
std::optional<match> find_markers(text_scanner& in, const format_row& row) {
  const std::size_t size = in.text().size();
  std::size_t count = row.markers.size();
  while (row.markers[count - 1].text.empty()) --count;
  const marker& final = row.markers[count - 1];
  const bool anywhere = row.after_max == nowhere;
  if (anywhere && in.first(final.text, 0, size) == nowhere) return std::nullopt;
  const std::size_t room = anywhere ? size : row.after_max + final.text.size();

  match m;
  std::size_t end = size;
  for (std::size_t i = count; i-- > 0;) {
    if (row.markers[i].which != marker::choice::last) continue;
    const std::size_t begin = i + 1 == count ? size - std::min(size, room) : 0;
    m.markers[i] = last_marker(in, row.markers[i], begin, end);
    if (m.markers[i].begin == nowhere) return std::nullopt;
    end = m.markers[i].begin;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (row.markers[i].which == marker::choice::last) continue;
    std::size_t next = i + 1;
    while (next < count && row.markers[next].which != marker::choice::last) ++next;
    m.markers[i] = first_marker(in, row.markers[i], i == 0 ? 0 : m.markers[i - 1].end,
                                next < count ? m.markers[next].begin : size);
    if (m.markers[i].begin == nowhere) return std::nullopt;
  }
  m.source = {m.markers[row.source].end, m.markers[row.source + 1].begin};
  if (m.source.begin > m.source.end) return std::nullopt;
  m.head = row.head;
  m.tail = row.tail;
  // A prefill repeats the head, perhaps without the line feed at its end, which some templates remove.
  const std::string_view after = in.text().substr(m.markers[count - 1].end);
  if (m.head.empty()) return m;
  if (after.ends_with(m.head)) {
    m.head = {};
  } else if (m.head.ends_with('\n') && after.ends_with(m.head.substr(0, m.head.size() - 1))) {
    m.head = "\n";
  }
  return m;
}

std::string_view within_edges(std::string_view text, edge edges) {
  if (edges == edge::fence) return text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
  if (edges == edge::lines) {
    if (text.starts_with('\n')) text.remove_prefix(1);
    if (text.ends_with('\n')) text.remove_suffix(1);
  }
  return text;
}

/// A line feed just inside a tag, which is not the file's.
std::size_t padding_of(std::string_view text) {
  if (text.starts_with('\n')) return 1;
  return text.starts_with("\r\n") ? 2 : 0;
}

std::string expected_text(std::string_view prompt, const format_row& row, const match& m) {
  std::string_view source = within_edges(m.source.of(prompt), row.edges);
  std::string body;
  if (row.has_update) {
    const span_of_bytes update{m.markers[row.source + 1].end, m.markers[row.source + 2].begin};
    std::string_view changes = within_edges(update.of(prompt), row.edges);
    if (row.edges == edge::verbatim) {
      body = source.substr(0, padding_of(source));
      source.remove_prefix(padding_of(source));
      changes.remove_prefix(padding_of(changes));
    }
    body += expected_file(source, changes);
  } else {
    body = source;
  }
  if (!row.cursor.empty()) {
    if (const std::size_t at = body.find(row.cursor); at != nowhere) body.erase(at, row.cursor.size());
  }
  body += m.tail;
  const std::string_view prefill = m.prefill.of(prompt);
  if (body.starts_with(prefill)) {
    body.erase(0, prefill.size());
  } else if (prefill.size() > template_max) {
    return {};  // not a prefill: the format is quoted in a longer text
  }
  return std::string(m.head) + body;
}

}  // namespace

std::optional<expectation> recognise(std::string_view prompt, std::uint64_t* bytes_read) {
  text_scanner in(prompt);
  std::optional<expectation> result;
  for (const format_row& row : known_formats()) {
    auto m = find_markers(in, row);
    if (!m || (row.adjust != nullptr && !row.adjust(in, row, *m))) continue;
    std::string text = expected_text(prompt, row, *m);
    if (!text.empty()) result = expectation{row.name, std::move(text)};
    break;
  }
  if (bytes_read != nullptr) *bytes_read = in.bytes_read();
  return result;
}

}  // namespace redline::formats
