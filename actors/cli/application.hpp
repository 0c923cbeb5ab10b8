#pragma once

#include <span>
#include <string>

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// Adds one subcommand, whose callback sets the exit code.
using add_command = void (*)(CLI::App& app, int& exit_code);

/// Runs the parts that `redline` and `redline-bench` share: --version, logging, --config, REDLINE_<OPTION> variables,
/// the exit codes of command.hpp, and `complete WORDS...`, which the scripts of `completions` call and --help does not
/// show (candidates.hpp). Returns the exit code for main.
int run_application(int argc, char** argv, const std::string& name, const std::string& description,
                    std::span<const add_command> commands);

/// The executable for a private server. It is this process's own if that is redline, whatever its name and even if its
/// file was replaced; otherwise it is the redline in the same folder.
std::string server_executable();

/// The path of another executable in this one's folder.
std::string sibling_executable(const std::string& name);

}  // namespace redline::actors::cli
