#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "bench/studies/common/names.hpp"
#include "runtime/base/ids.hpp"

namespace redline::studies {

/// The rounds in which a draft that always follows `expected` rightly writes `answer`: a run of at least two tokens
/// that `expected` has anywhere, with the token after it, or one token. So it is the least for drafts from that text,
/// if single tokens are not taken for runs.
[[nodiscard]] std::uint64_t rounds_along(std::span<const token> expected, std::span<const token> answer);

/// The flags are in bench/studies/commands.cpp. Prints a table and returns the exit code. `json` is a file for the
/// figures; "-" means standard output, and empty means none.
struct format_study_options {
  std::string model;   // only its tokenizer is used
  std::string bodies;  // a JSONL file of {"prompt", "answer"}
  std::string json;
};
int run_formats(const format_study_options& options);

}  // namespace redline::studies
