#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/copy/program.hpp"

namespace redline::copy {

/// An incomplete program.
struct program_draft {
  const program_machine& machine;
  program_state state;         // must not await a span
  const program& written;      // complete ops
  std::string_view text;       // text of the incomplete gen op
  const anchor_pair& anchors;  // anchors of the incomplete copy
  std::span<const document> files;
};

/// A likely continuation for use as a draft: bytes that the grammar allows. Most edits go through the old file from
/// start to end and replace single lines. So after a text it guesses a copy of the rest, from the line after the next
/// one on, and after a copy a text that ends with a line. Empty if there is no usual continuation.
[[nodiscard]] std::string guess_rest(const program_draft& p);

}  // namespace redline::copy
