#include "actors/cli/command.hpp"

#include <fstream>
#include <iostream>
#include <sstream>

namespace redline::actors::cli {

int report(const failure& why) {
  // The code's sentence is for logs, where failures of one kind are looked for.
  std::cerr << "redline: " << (why.context.empty() ? why.describe() : why.context) << "\n";
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
