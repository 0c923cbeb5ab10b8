#pragma once

#include <string>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// The manual page of `program`, in troff with the man(7) macros. It names the commands' pages.
std::string man_page(const command_text& program);
/// The page PROGRAM-COMMAND(1) of one command, including its subcommands.
std::string man_page(const command_text& program, const command_text& command);

}  // namespace redline::actors::cli
