#pragma once

#include <span>
#include <string>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// What may stand where the last of `words` stands, which is empty or begun; the others stand before it, and none of
/// them is the program's name. A line for each: the word, and a tab and what it means where that is known. The shell
/// keeps those that fit what is begun. Of "--flag=value" they are values. A line ":file" or ":folder" says that the
/// shell is to look for these itself. bash makes three words of "--flag=value".
std::string candidates(const command_text& program, std::span<const std::string> words);

}  // namespace redline::actors::cli
