#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace redline::actors::cli {

/// The kind of an argument's value, as far as a shell can complete it and a page can name it.
enum class value_kind : std::uint8_t { none, text, number, choice, file, folder };

/// An option or a positional argument, as --help describes it.
struct argument_text {
  std::vector<std::string> flags;  // "-m", "--model"; empty for a positional argument
  std::string place;               // name of a positional argument, such as "FILE"
  value_kind kind = value_kind::none;
  std::vector<std::string> choices;
  std::string help;
  std::string group;  // its heading in --help
  std::string preset;
  std::string variable;  // environment variable
  bool required = false;
  bool repeated = false;

  [[nodiscard]] bool is_positional() const { return flags.empty(); }
  /// The placeholder for the value: "f16|f32", "FILE", "N".
  [[nodiscard]] std::string value() const;
};

/// A command and its possible arguments and subcommands. Shell scripts, manual pages and suggestions are made from it,
/// so that none of them depends on the command line parser.
struct command_text {
  std::string name;
  std::string help;
  std::vector<argument_text> arguments;
  std::vector<command_text> commands;
  bool hands_over = false;  // the flags belong to another program

  /// The subcommand of that name; null if there is none.
  [[nodiscard]] const command_text* find(const std::string& command) const;
};

/// Describes a command without its hidden options.
command_text describe(const CLI::App& app);

/// The first clause of a help text, where space is short.
std::string short_help(const std::string& help);

}  // namespace redline::actors::cli
