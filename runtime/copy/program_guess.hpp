#pragma once

#include <span>
#include <string>
#include <string_view>

#include "runtime/copy/program.hpp"

namespace redline::copy {

/// A program that is being written.
struct program_draft {
  const program_machine& machine;
  program_state state;      // not inside of a span
  const program& written;   // complete ops
  std::string_view text;    // of the text op in work
  const anchor_pair& says;  // of the copy in work
  std::span<const document> files;
};

/// How it may go on: bytes of the grammar, to be tried and not believed. Most edits go through the old file from its
/// beginning to its end and replace a line by some: behind a text comes a copy of what is left, from the line after the
/// next one on, and behind a copy a text, which ends with a line. Empty where nothing is usual.
[[nodiscard]] std::string guess_rest(const program_draft& p);

}  // namespace redline::copy
