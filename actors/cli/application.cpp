#include "actors/cli/application.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <set>

#include "actors/cli/command.hpp"
#include "actors/cli/flags/config_file.hpp"
#include "actors/cli/flags/config_print.hpp"
#include "actors/cli/help/candidates.hpp"
#include "actors/cli/help/command_text.hpp"
#include "actors/cli/help/suggestion.hpp"
#include "kernels/dispatch.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/version.hpp"

namespace redline::actors::cli {
namespace {

/// Gives every long option a REDLINE_<NAME> variable; --help shows the names.
void name_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || !option->get_configurable()) continue;
    if (names.front() == "help" || names.front() == "version") continue;
    option->envname(environment_name(names.front()));
  }
  for (CLI::App* sub : app.get_subcommands({})) name_environment(*sub);
}

std::string version_text(const std::string& name) {
  std::string text = name + " " + build_version() + ", kernels:";
  for (const auto& t : kernels::list_targets()) {
    if (t.table != nullptr)
      text += " " + std::string(t.name) + (t.table == kernels::process_table().table ? " (used)" : "");
  }
  return text;
}

const CLI::App& last_command(const CLI::App& app) {
  const CLI::App* last = &app;
  while (!last->get_subcommands().empty()) last = last->get_subcommands().front();
  return *last;
}

/// Returns for example "redline session new".
std::string words_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : words_of(*command.get_parent()) + " " + command.get_name();
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& names) {
  const auto meant = suggest(word, names);
  return meant ? "; did you mean '" + *meant + "'?" : ";";
}

/// Points users of other servers' flags to --listen. Empty if the flag is about something else.
std::string as_listen(const std::vector<std::string>& words, const std::string& flag) {
  const auto at = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.starts_with(flag); });
  std::string value;
  if (at->size() > flag.size())
    value = at->substr(flag.size() + 1);
  else if (at + 1 != words.end() && !(at + 1)->starts_with('-'))
    value = *(at + 1);
  if (flag == "--port") return "--listen 127.0.0.1:" + (value.empty() ? std::string("PORT") : value);
  if (flag == "--host") return "--listen " + (value.empty() ? std::string("HOST") : value) + ":8080";
  return {};
}

/// Explains a word that begins with a dash and is not an option of the command or the program.
std::optional<std::string> explain_unknown_flag(const CLI::App& app) {
  const CLI::App& last = last_command(app);
  if (last.get_prefix_command()) return std::nullopt;
  const auto words = app.remaining(true);
  for (const std::string& word : words) {
    if (!word.starts_with('-') || word.size() < 2) continue;
    const std::string flag = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::App* c = &last; c != nullptr; c = c->get_parent()) {
      for (const argument_text& a : describe(*c).arguments) names.insert(names.end(), a.flags.begin(), a.flags.end());
    }
    const bool listens = std::find(names.begin(), names.end(), "--listen") != names.end();
    const std::string listen = listens ? as_listen(words, flag) : std::string();
    return "'" + words_of(last) + "' has no option " + flag +
           (listen.empty() ? did_you_mean(flag, names) : "; did you mean '" + listen + "'?") + " '" + words_of(last) +
           " --help' lists them";
  }
  return std::nullopt;
}

/// Explains an error that the parser's own text describes too briefly; nullopt otherwise.
std::optional<std::string> explain(const CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) return std::nullopt;  // --help, --version
  // If there is no such command, its options are not the program's.
  const auto unread = app.remaining(true);
  const bool lacks_command = &last_command(app) == &app && !unread.empty() && !unread.front().starts_with('-');
  if (!lacks_command) {
    if (auto why = explain_unknown_flag(app)) return why;
  }
  if (dynamic_cast<const CLI::FileError*>(&e) != nullptr) return "--config: " + std::string(e.what());
  const CLI::App& last = last_command(app);
  const auto& words = unread;
  const bool wants_command = last.get_require_subcommand_min() > 0;
  if (dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr && !words.empty() && !wants_command) {
    return "'" + words_of(last) + "' takes no argument '" + words.front() + "'; '" + words_of(last) +
           " --help' lists its arguments";
  }
  if (!wants_command) return std::nullopt;
  std::vector<std::string> names;
  for (const command_text& c : describe(last).commands) names.push_back(c.name);
  return "expected a command" + (&last == &app ? std::string() : " of '" + words_of(last) + "'") +
         (words.empty() ? std::string(";") : ", found '" + words.front() + "'" + did_you_mean(words.front(), names)) +
         " '" + words_of(last) + " --help' lists them";
}

/// A hint for a configuration key that its command does not have: "; did you mean 'rows-max'?".
std::string suggest_key(const CLI::App& app, const std::vector<std::string>& section, const std::string& key) {
  const CLI::App* command = &app;
  for (const std::string& part : section) {
    const auto found = command->get_subcommands([&](const CLI::App* sub) { return sub->get_name() == part; });
    if (found.empty()) return {};
    command = found.front();
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    if (option->get_configurable() && !option->get_lnames().empty()) names.push_back(option->get_lnames().front());
  }
  const auto meant = suggest(key, names);
  return meant ? "; did you mean '" + *meant + "'?" : "";
}

/// Turns "help serve" into "serve --help", as other programs do.
std::vector<char*> with_help_as_flag(int argc, char** argv) {
  static char flag[] = "--help";
  std::vector<char*> words(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "help") return words;
  words.erase(words.begin() + 1);
  words.push_back(flag);
  return words;
}

/// Makes required options optional, because the command is only to be shown. Returns them in `needed`.
void ask_for_nothing(CLI::App& app, std::set<const CLI::Option*>& needed) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->get_required()) needed.insert(option);
    option->required(false);
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) ask_for_nothing(*sub, needed);
}

/// Whether this process runs the commands of redline.
bool runs_redline = false;

}  // namespace

std::string server_executable() { return runs_redline ? "/proc/self/exe" : sibling_executable("redline"); }

std::string sibling_executable(const std::string& name) {
  std::error_code failed;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? name : (self.parent_path() / name).string();
}

int run_application(int argc, char** argv, const std::string& name, const std::string& description,
                    std::span<const add_command> commands) {
  runs_redline = name == "redline";
  CLI::App app(description, name);
  app.require_subcommand(1);
  app.set_version_flag("--version", [&] { return version_text(name); });
  app.set_config("--config", "", "Read options from this TOML file; each section is named after a subcommand", false)
      ->type_name("FILE");
  config_file config;
  config.attach(app);
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.footer(
      "Options come from flags, then REDLINE_<OPTION> in the environment, then the file given by --config, then the\n"
      "defaults. REDLINE_TARGET chooses the kernels (see 'redline inspect'). See 'redline COMMAND --help' for "
      "details.");
  std::string level = "info";
  std::string format = "text";
  app.add_option("--log-level", level, "debug, info, warning or error")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", format, "text or json")->check(CLI::IsMember({"text", "json"}))->capture_default_str();
  bool prints_config = false;
  std::set<const CLI::Option*> needed;
  app.add_flag_callback(
         "--print-config",
         [&] {
           prints_config = true;
           ask_for_nothing(app, needed);
         },
         "Print the value and source of each option of the command in the format of --config, without running it")
      ->trigger_on_parse()
      ->configurable(false);
  app.parse_complete_callback([&] {
    if (prints_config) {
      std::cout << print_config(app, config, needed);
      throw CLI::Success();
    }
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
  if (argc > 1 && std::string_view(argv[1]) == "complete") {  // the parser rejects an incomplete line
    std::cout << candidates(describe(app), std::vector<std::string>(argv + 2, argv + argc));
    return 0;
  }
  try {
    auto words = with_help_as_flag(argc, argv);
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& e) {
    auto why = config.explain(e.what(), {argv, static_cast<std::size_t>(argc)},
                              [&app](const auto& section, const auto& key) { return suggest_key(app, section, key); });
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
