#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// The script of each shell, for `completion_script`.
std::string bash_script(const command_text& program);
std::string zsh_script(const command_text& program);
std::string fish_script(const command_text& program);

// What they have in common.

std::string replace_all(std::string text, std::string_view what, std::string_view with);
/// With blanks between them.
std::string joined(const std::vector<std::string>& words);
/// Between single quotes; bash and zsh end the quotes for a quote.
std::string quoted(const std::string& text);
/// The shell function of a command: "_redline_session_new".
std::string function_name(const std::string& program, const std::string& path);
/// Calls `look` with each command, its path from the program ("session new") and its arguments together with those of
/// the program, which may stand after a command, too.
void for_each_command(
    const command_text& program,
    const std::function<void(const command_text&, const std::string&, const std::vector<argument_text>&)>& look);

}  // namespace redline::actors::cli
