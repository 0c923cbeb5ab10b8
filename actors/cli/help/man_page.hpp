#pragma once

#include <string>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// The manual page of `program`, in troff with the macros of man(7). It names the pages of the commands.
std::string man_page(const command_text& program);
/// The page PROGRAM-COMMAND(1) of one of its commands, with the commands below it.
std::string man_page(const command_text& program, const command_text& command);

}  // namespace redline::actors::cli
