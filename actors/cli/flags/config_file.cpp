#include "actors/cli/flags/config_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>
#include <string_view>

#include "runtime/base/hex.hpp"

namespace redline::actors::cli {
namespace {

/// The environment takes precedence over the file. The parser would read it after the file and skip options that have a
/// value.
void take_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->count() > 0 || option->get_envname().empty()) continue;
    const char* value = std::getenv(option->get_envname().c_str());
    if (value != nullptr && *value != '\0') option->add_result(std::string(value));
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) take_environment(*sub);
}

class toml_reader : public CLI::ConfigTOML {
 public:
  toml_reader(std::shared_ptr<config_text> text, CLI::App& app) : text_(std::move(text)), app_(&app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string bytes(config_bytes_max + 1, '\0');
    input.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(input.gcount()));
    *text_ = read_config_text(bytes);
    if (text_->complaint) throw CLI::ConfigError(*text_->complaint);
    take_environment(*app_);
    std::vector<CLI::ConfigItem> out;
    for (const config_entry& e : text_->entries) out.push_back({e.section, e.key.empty() ? "++" : e.key, e.values});
    return out;
  }

 private:
  std::shared_ptr<config_text> text_;
  CLI::App* app_;
};

/// Rewrites the parser's complaint in this program's terms.
std::string reword(const std::string& complaint) {
  std::smatch part;
  if (std::regex_match(complaint, part, std::regex("Value (.*) not in range (\\S+) to (\\S+)"))) {
    return "expected a number from " + part.str(2) + " to " + part.str(3);
  }
  if (std::regex_match(complaint, part, std::regex("(.*) not in \\{(.*)\\}"))) return "expected one of " + part.str(2);
  return complaint;
}

}  // namespace

void config_file::attach(CLI::App& app) {
  app_ = &app;
  app.config_formatter(std::make_shared<toml_reader>(text_, app));
}

std::string config_file::path() const { return app_->get_config_ptr()->as<std::string>(); }

std::string config_file::place(const config_entry& entry) const {
  return path() + ":" + std::to_string(entry.line) + ": " + escape_bytes(entry.text, config_shown_bytes_max) + ": ";
}

std::string config_file::where(const std::string& section, const std::string& key) const {
  const std::string name = section.empty() ? key : section + "." + key;
  const auto at = std::ranges::find(text_->entries, name, &config_entry::name);
  return at == text_->entries.end() ? path() : path() + ":" + std::to_string(at->line);
}

std::string environment_name(std::string_view option) {
  std::string name = "REDLINE_" + std::string(option);
  std::replace(name.begin(), name.end(), '-', '_');
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::optional<std::string> config_file::explain(const std::string& what, std::span<char* const> arguments,
                                                const suggester& did_you_mean) const {
  if (text_->complaint) {
    if (what != *text_->complaint) return std::nullopt;
    return path() + ": " + what;
  }
  constexpr std::string_view unknown = "INI was not able to parse ";
  if (what.starts_with(unknown)) {
    std::string name = what.substr(unknown.size());
    if (name.ends_with(".++")) name.resize(name.size() - 3);
    const auto at = std::ranges::find(text_->entries, name, &config_entry::name);
    if (at == text_->entries.end()) return std::nullopt;
    if (at->key.empty()) return place(*at) + "expected the name of a command";
    return place(*at) + "expected an option of the command (its --help lists them), without the '--'" +
           did_you_mean(at->section, at->key);
  }
  const auto colon = what.find(": ");
  if (!what.starts_with("--") || colon == std::string::npos) return std::nullopt;
  const std::string flag = what.substr(0, colon);
  const auto is_it = [&](const char* argument) {
    return argument == flag || std::string_view(argument).starts_with(flag + "=");
  };
  if (std::any_of(arguments.begin(), arguments.end(), is_it)) return std::nullopt;
  // The environment takes precedence over the file.
  const std::string variable = environment_name(std::string_view(flag).substr(2));
  if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0') {
    return variable + " in the environment: " + reword(what.substr(colon + 2));
  }
  const auto at = std::find_if(text_->entries.rbegin(), text_->entries.rend(),
                               [&](const config_entry& e) { return "--" + e.key == flag; });
  if (at == text_->entries.rend()) return std::nullopt;
  return place(*at) + reword(what.substr(colon + 2));
}

}  // namespace redline::actors::cli
