#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redline::text {

// A file has bytes that a model should not see: a byte order mark, line ends of two bytes, a last line without a line
// feed. Models write "\n", and small ones are confused by "\r". So they see a text without these, and their output gets
// them back. An edit changes only the lines that it was asked to change.

/// The reason that these bytes cannot be edited as text; nullopt if they can. Invalid UTF-8 cannot: a model writes
/// characters, and none of them represents an invalid byte.
[[nodiscard]] std::optional<std::string> text_complaint(std::string_view bytes);

/// A file as a model sees it: every line ends with "\n" only, except that the last may have no end; no byte order mark.
[[nodiscard]] std::string shown_text(std::string_view bytes);

/// Gives `after`, made from shown_text(before), the form of `before`: its byte order mark, its line ends, and whether
/// its last line has one. In a file with mixed line ends, unchanged lines keep theirs, and a new line gets that of the
/// line before it.
[[nodiscard]] std::string with_form_of(std::string_view before, std::string_view after);

}  // namespace redline::text
