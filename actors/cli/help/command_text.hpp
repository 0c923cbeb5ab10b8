#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// What stands for an argument's value, as far as a shell can complete it and a page can name it.
enum class value_kind : std::uint8_t { none, text, number, choice, file, folder };

/// An option, or a positional argument, as --help tells of it.
struct argument_text {
  std::vector<std::string> flags;  // "-m", "--model"; none of a positional argument
  std::string place;               // "FILE", of a positional argument
  value_kind kind = value_kind::none;
  std::vector<std::string> choices;
  std::string help;
  std::string group;  // the heading it is listed under
  std::string preset;
  std::string variable;  // of the environment
  bool required = false;
  bool repeated = false;

  [[nodiscard]] bool is_positional() const { return flags.empty(); }
  /// What a page shows for the value: "f16|f32", "FILE", "N".
  [[nodiscard]] std::string value() const;
};

/// A command with all that may follow it. Scripts for shells, manual pages and suggestions are made from it, so that
/// none of them knows the command line's parser.
struct command_text {
  std::string name;
  std::string help;
  std::vector<argument_text> arguments;
  std::vector<command_text> commands;
  bool hands_over = false;  // to another program, which has the flags

  /// One of `commands`; nullptr when there is none of this name.
  [[nodiscard]] const command_text* find(const std::string& command) const;
};

/// Hidden options are left out.
command_text describe(const CLI::App& app);

/// The first clause of a help text, for a place that has room for few words.
std::string short_help(const std::string& help);

}  // namespace redline::actors::cli
