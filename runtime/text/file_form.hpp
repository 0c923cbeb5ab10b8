#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace redline::text {

// A file has more bytes than a model should see: a byte order mark, line ends of two bytes, a last line without a line
// feed. Models write "\n", and small ones stumble over "\r"; so they are shown a text without these, and what they make
// of it gets them back. An edit changes the lines that it was asked to change, and no others.

/// Why these bytes are no text that can be edited; nullopt when they are. What is not UTF-8 cannot be: a model writes
/// characters, and nothing shows which of them stands for a byte that is none.
[[nodiscard]] std::optional<std::string> text_complaint(std::string_view bytes);

/// A file as a model is shown it: every line ends with "\n" alone, but for a last one that has none; no byte order
/// mark.
[[nodiscard]] std::string shown_text(std::string_view bytes);

/// `after`, made from shown_text(before), as bytes in the form of `before`: its byte order mark, its line ends, and
/// whether its last line has one. In a file of several line ends the lines that stayed keep theirs, and a new one has
/// that of the line before it.
[[nodiscard]] std::string with_form_of(std::string_view before, std::string_view after);

}  // namespace redline::text
