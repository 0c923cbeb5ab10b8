#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "actors/cli/application.hpp"

namespace redline::test {

/// A command's output and exit code.
struct command_result {
  std::string out, error;
  int exit_code = 0;
};

/// Runs one command in this process as `redline LINE` would; spaces separate the words of `line`.
inline command_result call_command(actors::cli::add_command add, const std::string& line) {
  std::vector<std::string> words{"redline"};
  std::istringstream in(line);
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  command_result r;
  r.exit_code =
      actors::cli::run_application(static_cast<int>(arguments.size()), arguments.data(), "redline", "", {&add, 1});
  r.out = testing::internal::GetCapturedStdout();
  r.error = testing::internal::GetCapturedStderr();
  return r;
}

}  // namespace redline::test
