#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.hpp"

namespace redline::actors::cli {

/// What a program wrote, and how it ended; 127: there is no such program.
struct child_outcome {
  std::string out;
  std::string error;
  int exit_code = 0;
};

/// Runs a program, looked for in PATH, without input; variables are NAME=VALUE, on top of this process's environment.
/// Fails when it cannot be started or writes more than a limit.
result<child_outcome> run_for_output(const std::vector<std::string>& words,
                                     const std::vector<std::string>& variables = {});
/// Runs it with this process's input and output; its exit code.
result<int> run_on_terminal(const std::vector<std::string>& words);

}  // namespace redline::actors::cli
