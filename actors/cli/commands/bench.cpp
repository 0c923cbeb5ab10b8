// redline bench: hands over to redline-bench, which a server does not need.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"

namespace redline::actors::cli {

void add_bench(CLI::App& app, int& exit_code) {
  auto* c = app.add_subcommand("bench", "Measure this machine: runs redline-bench with the same arguments");
  c->prefix_command();
  c->set_help_flag();  // --help and every other flag are redline-bench's
  c->fallthrough(false);
  c->callback([c, &exit_code] {
    const std::string path = sibling_executable("redline-bench");
    std::vector<std::string> words = c->remaining();
    words.insert(words.begin(), path);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    ::execv(path.c_str(), arguments.data());
    exit_code = report(failure{errc::not_ready,
                               "cannot run " + path + ": " + std::strerror(errno) + "; 'make bench-build' builds it"});
  });
}

}  // namespace redline::actors::cli
