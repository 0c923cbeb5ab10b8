#pragma once

#include <span>
#include <string>

#include "actors/cli/help/command_text.hpp"

namespace redline::actors::cli {

/// The words that may replace the last of `words`, which is empty or incomplete; the others precede it, without the
/// program's name. Each line is a word, followed by a tab and its meaning if known. The shell keeps those that match.
/// For "--flag=value" the lines are values. A line ":file" or ":folder" makes the shell list these itself. bash splits
/// "--flag=value" into three words.
std::string candidates(const command_text& program, std::span<const std::string> words);

}  // namespace redline::actors::cli
