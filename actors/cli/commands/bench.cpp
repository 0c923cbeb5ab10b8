// redline bench and redline plan: run redline-bench, which a server does not need.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "actors/cli/application.hpp"
#include "actors/cli/command.hpp"
#include "actors/cli/commands/commands.hpp"

namespace redline::actors::cli {
namespace {

/// Replaces this process. Returns only if that fails.
int run_redline_bench(std::vector<std::string> words) {
  const std::string path = sibling_executable("redline-bench");
  words.insert(words.begin(), path);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(path.c_str(), arguments.data());
  return report(
      failure{errc::io_error, "cannot run " + path + ": " + std::strerror(errno) + "; 'make bench-build' builds it"});
}

/// redline-bench handles all flags, including --help.
CLI::App* add_handover(CLI::App& app, const std::string& name, const std::string& help) {
  auto* c = app.add_subcommand(name, help);
  c->prefix_command();
  c->set_help_flag();
  c->fallthrough(false);
  return c;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto* c = add_handover(app, "bench", "Measure this machine: runs redline-bench with the same arguments");
  c->callback([c, &exit_code] { exit_code = run_redline_bench(c->remaining()); });
}

void add_plan(CLI::App& app, int& exit_code) {
  auto* c = add_handover(app, "plan", "Simulate how many machines a number of users needs: runs redline-bench plan");
  c->callback([c, &exit_code] {
    std::vector<std::string> words = c->remaining();
    words.insert(words.begin(), "plan");
    exit_code = run_redline_bench(std::move(words));
  });
}

}  // namespace redline::actors::cli
