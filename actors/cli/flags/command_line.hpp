#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Wraps CLI11, whose headers take seconds to compile, so that only command_line.cpp includes it.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace redline::actors::cli {

/// One option of a command. --help shows its variable's initial value as the default. Every setter returns the option
/// itself. Lives as long as its command.
class option {
 public:
  option(CLI::Option& described, const CLI::App& of) : option_(&described), app_(&of) {}

  option& require(bool required = true);
  /// The heading in --help.
  option& group(const char* heading);
  option& describe(const std::string& help);
  /// Shows no default in --help, because "not given" has a meaning of its own.
  option& hide_default();
  /// Bounds, both inclusive.
  template<class Number>
  option& range(Number least, Number most) {
    if constexpr (std::is_floating_point_v<Number>)
      return real_range(least, most);
    else
      return integer_range(static_cast<std::int64_t>(least), static_cast<std::int64_t>(most));
  }
  option& one_of(std::vector<std::string> names);
  option& existing_file();
  /// A file, or the name of a model in the hub's cache ("org/name:quant"), which becomes its path.
  option& model_file();
  option& existing_folder();
  option& existing_path();
  /// A path that need not exist; shells complete it as a path.
  option& any_file();
  option& any_folder();
  /// For a list: the number of values.
  option& count(int least, int most);
  /// For a list: one word may contain several values with this separator.
  option& separator(char between);
  /// Must not be given together with `other`.
  option& exclude(const option& other);
  [[nodiscard]] bool given() const;
  /// True if given on the command line itself, not by the environment or a file.
  [[nodiscard]] bool given_as_flag() const;

 private:
  option& real_range(double least, double most);
  option& integer_range(std::int64_t least, std::int64_t most);

  CLI::Option* option_;
  const CLI::App* app_;
};

/// A command or subcommand to which options are added. Their variables must outlive it.
class command {
 public:
  command(CLI::App& described) : app_(&described) {}  // NOLINT(google-explicit-constructor)
  /// Creates a subcommand of `parent`.
  command(const command& parent, const std::string& name, const std::string& help);

  /// Requires one of its subcommands.
  void require_command() const;

  option add(const std::string& names, std::string& into, const std::string& help) const;
  option add(const std::string& names, std::int32_t& into, const std::string& help) const;
  option add(const std::string& names, std::uint32_t& into, const std::string& help) const;
  option add(const std::string& names, std::int64_t& into, const std::string& help) const;
  option add(const std::string& names, std::uint64_t& into, const std::string& help) const;
  option add(const std::string& names, float& into, const std::string& help) const;
  option add(const std::string& names, double& into, const std::string& help) const;
  option add(const std::string& names, std::optional<std::uint32_t>& into, const std::string& help) const;
  option add(const std::string& names, std::vector<std::string>& into, const std::string& help) const;
  option add_flag(const std::string& names, bool& into, const std::string& help) const;

  /// Sets what runs once all options are read; its result is the exit code of the process.
  void on_run(int& exit_code, std::function<int()> run) const;

 private:
  CLI::App* app_;
};

}  // namespace redline::actors::cli
