#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace redline::formats {

/// What a prompt of a known format lets the server expect as the answer.
struct expectation {
  std::string_view format;  // the row's name in format_table.cpp, static
  std::string text;         // from the answer's first byte; without what the prompt already prefilled
};

/// Recognizes prompts of public apply and next-edit formats. `prompt` is rendered, with the chat template's own text,
/// and the answer continues it. Returns nullopt if the prompt has no known format or lets nothing be expected. Never
/// throws, except if memory runs out. An expectation is a guess: it may only be used for drafts.
///
/// A format is a list of markers in a fixed order, searched from the end. Only short text may follow the last one (256
/// bytes; where a format ends with an instruction, also that): the end of the turn and the beginning of the answer
/// according to the chat template. So a format that is quoted in a longer conversation is not recognized. Two formats
/// allow any text there: aider's, in which the request follows the files, and Sweep's, in which a prefill follows.
///
/// The time is linear in the prompt's size, whatever it contains. A prompt without a known format is dismissed by
/// searches of its last kilobyte and three quick searches of the whole. `bytes_read`, if given, gets how many bytes the
/// searches looked at.
[[nodiscard]] std::optional<expectation> recognise(std::string_view prompt, std::uint64_t* bytes_read = nullptr);

}  // namespace redline::formats
