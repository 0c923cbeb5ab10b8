#pragma once

#include <array>
#include <string>
#include <string_view>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

inline constexpr std::array<std::string_view, 3> shells{"bash", "zsh", "fish"};

/// A script that completes `program`'s commands, flags, choices, files and folders in this shell. It needs nothing but
/// the shell itself and does not run the program.
std::string completion_script(const command_text& program, std::string_view shell);

}  // namespace redline::actors::cli
