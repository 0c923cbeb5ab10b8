#include "actors/cli/command.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "runtime/base/terminal_text.hpp"

namespace redline::actors::cli {

int report(const failure& why) {
  // The code's own text is for logs, where failures are searched by kind. The context may contain a server's or a
  // file's text.
  std::cerr << "redline: " << shown_on_terminal(why.context.empty() ? why.describe() : why.context) << "\n";
  switch (why.code) {
    case errc::invalid_argument:
      return exit_usage;
    case errc::not_ready:
    case errc::unreachable:
    case errc::timed_out:
      return exit_unavailable;
    case errc::file_malformed:
    case errc::unsupported_format:
    case errc::file_unreadable:
      return exit_config;
    default:
      return exit_failed;
  }
}

int report(const result<void>& outcome) { return outcome ? 0 : report(outcome.error()); }

bool is_output_terminal() { return ::isatty(STDOUT_FILENO) != 0; }

void print_text(std::string_view text) {
  if (is_output_terminal())
    std::cout << shown_on_terminal(text);
  else
    std::cout.write(text.data(), static_cast<std::streamsize>(text.size()));
}

int finish_output(int exit_code) {
  errno = 0;
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (is_written) return exit_code;
  std::cerr << "redline: standard output could not be written" << (errno != 0 ? ": " : "")
            << (errno != 0 ? std::strerror(errno) : "") << "; the output is incomplete\n";
  return exit_code != 0 ? exit_code : exit_failed;
}

result<std::string> read_whole(const std::string& path) {
  std::ostringstream out;
  if (path == "-") {
    out << std::cin.rdbuf();
    return out.str();
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return failure{errc::file_unreadable, "cannot read " + path};
  out << in.rdbuf();
  return out.str();
}

result<void> write_whole(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) return failure{errc::io_error, "cannot write " + path};
  return {};
}

}  // namespace redline::actors::cli
