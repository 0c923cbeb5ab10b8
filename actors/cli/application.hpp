#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// Adds one subcommand, whose callback sets the exit code.
using add_command = void (*)(CLI::App& app, int& exit_code);

/// What `redline` and `redline-bench` have in common: --version, logging, --config, REDLINE_<OPTION> in the
/// environment, the exit codes of command.hpp, and `complete WORDS...`, which the scripts of `completions` ask and
/// --help is silent of (candidates.hpp). Returns the exit code for main.
int run_application(int argc, char** argv, const std::string& name, const std::string& description,
                    std::span<const add_command> commands);

/// What to run for a server of the process's own: itself where it is redline, under whatever name and even if its file
/// was replaced; else the redline beside it.
std::string server_executable();

/// The path of another executable in this one's folder.
std::string sibling_executable(const std::string& name);

}  // namespace redline::actors::cli
