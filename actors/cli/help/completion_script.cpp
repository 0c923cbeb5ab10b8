#include "actors/cli/help/completion_script.hpp"

#include "actors/cli/help/shell_script.hpp"

namespace redline::actors::cli {

std::string completion_script(const command_text& program, std::string_view shell) {
  if (shell == "zsh") return zsh_script(program);
  return shell == "fish" ? fish_script(program) : bash_script(program);
}

}  // namespace redline::actors::cli
