#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/formats/text_scanner.hpp"

namespace redline::formats {

/// How much text of a chat template may follow a format's last marker. The longest known has 60 bytes (an empty
/// reasoning part); a question about a quoted prompt is longer.
constexpr std::size_t template_max = 256;

/// Bytes [begin, end) of the prompt.
struct span_of_bytes {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// A text by which a format is identified.
struct marker {
  enum class choice : std::uint8_t {
    last,      // the last one before the next marker
    first,     // the first one after the marker before it: what lies behind may contain the same text
    at_start,  // the first one at the start of a line or right after text of the chat template
  };
  std::string_view text;
  choice which = choice::last;
  std::string_view before = {};  // must precede the text, with nothing but whitespace in between
};

/// What belongs to the source at its edges.
enum class edge : std::uint8_t {
  verbatim,  // everything, so that padding in the prompt is padding of the answer
  lines,     // whole lines: the line feeds next to the two markers belong to the frame
  fence,     // the rest of the first marker's line (the language) belongs to the frame
};

/// Where a row's parts were found in a prompt.
struct match {
  static constexpr std::size_t markers_max = 5;
  std::array<span_of_bytes, markers_max> markers;  // including `before`
  span_of_bytes source;
  span_of_bytes prefill;  // the beginning of the answer that the prompt ends with
  std::string_view head;
  std::string_view tail;
};

/// One format. All the knowledge about it is in its row; most rows need no code.
struct format_row {
  std::string_view name;
  std::array<marker, match::markers_max> markers;  // as ordered in the prompt; unused ones at the end are empty
  std::size_t source = 0;                          // the source lies between this marker and the next
  edge edges = edge::verbatim;
  std::string_view cursor = {};  // one such tag is cut out of the source
  std::string_view head = {};    // expected before the copy of the source
  std::string_view tail = {};    // and after it
  bool has_update = false;       // the next two markers enclose an update of the source, which may leave out lines
  std::size_t after_max = template_max;  // bytes that may follow the last marker; `nowhere`: any number
  std::string_view file = {};            // begins the section of a file, for `adjust`
  /// A rule that cannot be data: completes or corrects the match. Returns false if the prompt has another format.
  bool (*adjust)(text_scanner&, const format_row&, match&) = nullptr;
};

/// In the order in which they are tried.
[[nodiscard]] std::span<const format_row> known_formats();

}  // namespace redline::formats
