#include "actors/cli/application.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/config_file.hpp"
#include "kernels/dispatch.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors::cli {
namespace {

/// Every long option can also be given as REDLINE_<NAME>; --help shows the names.
void name_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || names.front() == "help" || names.front() == "version" || names.front() == "config") continue;
    std::string name = "REDLINE_" + names.front();
    std::replace(name.begin(), name.end(), '-', '_');
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    option->envname(name);
  }
  for (CLI::App* sub : app.get_subcommands({})) name_environment(*sub);
}

std::string version_text(const std::string& name) {
  std::string text = name + " " + version() + ", kernels:";
  for (const auto& t : kernels::list_targets()) {
    if (t.table != nullptr)
      text += " " + std::string(t.name) + (t.table == kernels::process_table().table ? " (used)" : "");
  }
  return text;
}

/// What the parser says too shortly; nothing where its own words do.
std::optional<std::string> explain(const CLI::App& app, const CLI::ParseError& e) {
  if (dynamic_cast<const CLI::FileError*>(&e) != nullptr) return "--config: " + std::string(e.what());
  if (dynamic_cast<const CLI::RequiredError*>(&e) == nullptr || !app.get_subcommands().empty()) return std::nullopt;
  const auto words = app.remaining();
  return "expected a command" + (words.empty() ? std::string() : ", found '" + words.front() + "'") + "; '" +
         app.get_name() + " --help' lists them";
}

}  // namespace

std::string sibling_executable(const std::string& name) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? name : (self.parent_path() / name).string();
}

int run_application(int argc, char** argv, const std::string& name, const std::string& description,
                    std::span<const add_command> commands) {
  CLI::App app(description, name);
  app.require_subcommand(1);
  app.set_version_flag("--version", [&] { return version_text(name); });
  app.set_config("--config", "", "Read options from this TOML file; sections are subcommands", false)
      ->type_name("FILE");
  config_file config;
  config.attach(app);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.footer(
      "Options come from flags, then REDLINE_<OPTION> in the environment, then the file given by --config, then the\n"
      "defaults. REDLINE_TARGET chooses the kernels (see 'redline inspect'). 'redline COMMAND --help' tells more.");
  std::string level = "info";
  std::string format = "text";
  app.add_option("--log-level", level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  app.parse_complete_callback([&] {
    const auto least = level == "debug"     ? log_level::debug
                       : level == "warning" ? log_level::warning
                       : level == "error"   ? log_level::error
                                            : log_level::info;
    configure_log(least, format == "json" ? log_format::json : log_format::text);
  });
  int exit_code = 0;
  app.fallthrough();  // --log-level may stand after the subcommand
  for (const add_command add : commands) add(app, exit_code);
  name_environment(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    auto why = config.explain(e.what(), {argv, static_cast<std::size_t>(argc)});
    if (!why) why = explain(app, e);
    if (why) {
      std::cerr << name << ": " << *why << "\n";
      return exit_usage;
    }
    return app.exit(e) == 0 ? 0 : exit_usage;
  } catch (const std::exception& e) {
    std::cerr << name << ": " << e.what() << "\n";
    return exit_failed;
  }
  return exit_code;
}

}  // namespace redline::actors::cli
