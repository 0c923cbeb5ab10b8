#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// Exit codes besides 0: 1 failed, 2 usage, 69 something needed is unavailable, 78 configuration.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_unavailable = 69;
inline constexpr int exit_config = 78;

/// Prints "redline: ..." to standard error and returns the exit code that fits the failure.
int report(const failure& why);
/// The same for a command's outcome: 0 when all went well.
int report(const result<void>& outcome);

[[nodiscard]] bool is_output_terminal();
/// Writes text that this program did not make, such as a model's, to standard output: as it is, and on a terminal so
/// that it obeys none of it. A piece of a stream ends at a character.
void print_text(std::string_view text);
/// Writes out what waits to be, and the exit code: the given one, but a failure, which is told, where something of
/// standard output could not be written.
int finish_output(int exit_code);

/// The whole file or standard input ("-").
result<std::string> read_whole(const std::string& path);
result<void> write_whole(const std::string& path, const std::string& bytes);

}  // namespace redline::actors::cli
