#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// A program's output and exit code. 127 means that there is no such program.
struct child_outcome {
  std::string out;
  std::string error;
  int exit_code = 0;
};

/// Runs a program from PATH without input. variables: NAME=VALUE, in addition to this process's environment. Fails if
/// it cannot be started or its output exceeds a limit.
result<child_outcome> run_for_output(const std::vector<std::string>& words,
                                     const std::vector<std::string>& variables = {});
/// Runs it with this process's input and output, and returns its exit code.
result<int> run_on_terminal(const std::vector<std::string>& words);

}  // namespace redline::actors::cli
