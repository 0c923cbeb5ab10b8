// The redline command: parses the command line and hands over to one of the commands.

#include <algorithm>
#include <iostream>

#include "actors/commands/command.hpp"
#include "kernels/dispatch.hpp"

namespace {

using namespace redline;

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

std::string version_text() {
  std::string text = "redline " REDLINE_VERSION ", kernels:";
  for (const auto& t : kernels::list_targets()) {
    if (t.table != nullptr)
      text += " " + std::string(t.name) + (t.table == kernels::process_table().table ? " (used)" : "");
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Serves code-edit models to many users at once, on CPUs.", "redline");
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text);
  app.set_config("--config", "", "Read options from this TOML file; sections are subcommands", false);
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
  app.fallthrough();  // --log-level may stand behind the subcommand
  actors::commands::add_serve(app, exit_code);
  actors::commands::add_edit(app, exit_code);
  actors::commands::add_session(app, exit_code);
  actors::commands::add_generate(app, exit_code);
  actors::commands::add_tokenize(app, exit_code);
  actors::commands::add_inspect(app, exit_code);
  actors::commands::add_doctor(app, exit_code);
  actors::commands::add_worker(app, exit_code);
  actors::commands::add_keygen(app, exit_code);
  actors::commands::add_demo(app, exit_code);
  actors::commands::add_synth(app, exit_code);
  actors::commands::add_quantize(app, exit_code);
  actors::commands::add_convert(app, exit_code);
  actors::commands::add_copy(app, exit_code);
  actors::commands::add_bench(app, exit_code);
  name_environment(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : actors::commands::exit_usage;
  } catch (const std::exception& e) {
    std::cerr << "redline: " << e.what() << "\n";
    return actors::commands::exit_failed;
  }
  return exit_code;
}
