#pragma once

#include <set>
#include <string>

#include "actors/cli/flags/config_file.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redline::actors::cli {

/// What --print-config prints: every option of the command that was given, and of the program, with its value and where
/// that comes from, as the file that gives them the same values. Options without a value are comments; `needed`: those
/// that the command does not run without.
std::string print_config(const CLI::App& program, const config_file& file, const std::set<const CLI::Option*>& needed);

}  // namespace redline::actors::cli
