#include "actors/cli/processes/run_again.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "actors/cli/command.hpp"

namespace redline::actors::cli {

int run_again() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string words{std::istreambuf_iterator<char>(in), {}};
  std::vector<char*> arguments;
  for (std::size_t at = 0; at < words.size(); at += std::strlen(&words[at]) + 1) arguments.push_back(&words[at]);
  arguments.push_back(nullptr);
  std::cout.flush();
  // Ports and lock files that are still open would count as taken, so exec closes them, after it has ended the other
  // threads. Closing them here would abort the process, because ZeroMQ's threads live as long as the engine.
  if (arguments.size() > 1 && ::close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
    ::execv("/proc/self/exe", arguments.data());
  std::cerr << "redline: cannot restart: " << std::strerror(errno) << "\n";
  return exit_failed;
}

}  // namespace redline::actors::cli
