#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace redline::test {

/// A shell command's standard output (and error, where the command says 2>&1) and exit code.
struct shell_result {
  std::string out;
  int exit_code = 0;
};

inline shell_result call_shell(const std::string& line) {
  shell_result r;
  std::FILE* pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) return {"", -1};
  char part[4096];
  for (std::size_t n = 0; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) r.out.append(part, n);
  const int status = ::pclose(pipe);
  r.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return r;
}

inline bool has_program(const std::string& name) {
  return call_shell("command -v " + name + " 2>/dev/null").exit_code == 0;
}

/// Quotes the text as one word of a shell.
inline std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace redline::test
