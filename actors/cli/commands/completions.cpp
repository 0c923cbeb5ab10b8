// redline completions: prints a script by which a shell gets completions from the program.

#include <iostream>
#include <memory>

#include "actors/cli/commands/commands.hpp"
#include "actors/cli/flags/command_line.hpp"
#include "actors/cli/help/completion_script.hpp"

namespace redline::actors::cli {

void add_completions(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  const command c(app, "completions", "Print a script that completes commands and flags in a shell");
  c.add("SHELL", *shell, "The shell to print the script for").require().one_of({shells.begin(), shells.end()});
  c.on_run(exit_code, [shell] {
    std::cout << completion_script(*shell);
    return 0;
  });
}

}  // namespace redline::actors::cli
