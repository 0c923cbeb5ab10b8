#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Exit codes other than 0: 1 failed, 2 usage, 69 something needed is unavailable, 78 configuration.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_unavailable = 69;
inline constexpr int exit_config = 78;

/// Prints "redline: ..." to standard error and returns the exit code that fits the failure.
int report(const failure& why);
/// The same for a command's outcome; 0 if it succeeded.
int report(const result<void>& outcome);

[[nodiscard]] bool is_output_terminal();
/// Writes external text, such as a model's, to standard output: unchanged, except that a terminal gets it with control
/// sequences escaped. A piece of a stream ends at a character boundary.
void print_text(std::string_view text);
/// Flushes standard output. Returns the given exit code, or reports a failure and returns its code if some output could
/// not be written.
int finish_output(int exit_code);

/// Reads a whole file, or standard input for "-".
result<std::string> read_whole(const std::string& path);
result<void> write_whole(const std::string& path, const std::string& bytes);

}  // namespace redline::actors::cli
