#pragma once

#include <set>
#include <string>

#include "actors/cli/flags/config_file.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redline::actors::cli {

/// The output of --print-config: every option of the given command and of the program, with its value and the value's
/// origin, as a file that sets the same values. Options without a value are comments. needed: the options without which
/// the command does not run.
std::string print_config(const CLI::App& program, const config_file& file, const std::set<const CLI::Option*>& needed);

}  // namespace redline::actors::cli
