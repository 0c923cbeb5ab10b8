#include "actors/cli/review/text_editor.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "actors/cli/review/child_output.hpp"

namespace redline::actors::cli {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string editor() {
  for (const char* name : {"VISUAL", "EDITOR"}) {
    if (const std::string value = variable(name); !value.empty()) return value;
  }
  return "vi";
}

}  // namespace

result<std::string> edit_text(const std::string& text) {
  std::string path = variable("TMPDIR");
  path = (path.empty() ? "/tmp" : path) + "/redline-hunk-XXXXXX.diff";
  const int descriptor = ::mkstemps(path.data(), 5);
  if (descriptor < 0) return failure{errc::io_error, path + ": " + std::strerror(errno)};
  ::close(descriptor);
  const auto outcome = [&]() -> result<std::string> {
    std::ofstream(path, std::ios::binary) << text;
    // The variable may contain arguments, which the shell splits as it does for git.
    const std::string command = editor();
    REDLINE_TRY_ASSIGN(const int code, run_on_terminal({"sh", "-c", command + " \"$@\"", command, path}));
    if (code != 0) {
      return failure{errc::io_error, "the editor '" + command + "' ended with exit code " + std::to_string(code) +
                                         "; set VISUAL or EDITOR to use another one"};
    }
    std::ifstream in(path, std::ios::binary);
    std::ostringstream read;
    read << in.rdbuf();
    return read.str();
  }();
  ::unlink(path.c_str());
  return outcome;
}

}  // namespace redline::actors::cli
