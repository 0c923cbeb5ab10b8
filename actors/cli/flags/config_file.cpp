#include "actors/cli/flags/config_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <string_view>

#include "actors/cli/flags/toml_value.hpp"
#include "runtime/base/hex.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t file_bytes_max = 64 * 1024;
constexpr std::size_t line_bytes_max = config_line_bytes_max;
constexpr std::ptrdiff_t nesting_max = 4;  // sections are a command and its subcommand
constexpr std::size_t shown_bytes_max = 80;

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

bool is_too_deep(std::string_view name) { return std::count(name.begin(), name.end(), '.') >= nesting_max; }

/// The environment goes before the file, while the parser would read it after the file and leave alone what has a
/// value.
void take_environment(CLI::App& app) {
  for (CLI::Option* option : app.get_options([](const CLI::Option*) { return true; })) {
    if (option->count() > 0 || option->get_envname().empty()) continue;
    const char* value = std::getenv(option->get_envname().c_str());
    if (value != nullptr && *value != '\0') option->add_result(std::string(value));
  }
  for (CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) take_environment(*sub);
}

/// The parser knows no escapes, and a '#' between quotes begins a comment for it. So it reads the names of values in
/// place of strings and arrays, which are put back afterwards.
class hidden_values {
 public:
  std::string hide(const std::string& text) {
    std::istringstream input(text);
    std::string out;
    for (std::string line; std::getline(input, line); out += line + "\n") {
      const auto equals = line.find('=');
      const std::string start = trimmed(line);
      if (equals == std::string::npos || start.starts_with('#') || start.starts_with(';')) continue;
      auto value = read_toml_value(std::string_view(line).substr(equals + 1));
      if (!value || value->empty()) continue;
      line = line.substr(0, equals + 1) + name(values_.size());
      values_.push_back(std::move(*value));
    }
    return out;
  }
  void put_back(std::vector<CLI::ConfigItem>& items) const {
    for (CLI::ConfigItem& item : items) {
      std::vector<std::string> inputs;
      for (const std::string& input : item.inputs) {
        const auto at = std::find(names_.begin(), names_.end(), input);
        if (at == names_.end())
          inputs.push_back(input);
        else
          inputs.insert(inputs.end(), values_[static_cast<std::size_t>(at - names_.begin())].begin(),
                        values_[static_cast<std::size_t>(at - names_.begin())].end());
      }
      item.inputs = std::move(inputs);
    }
  }

 private:
  const std::string& name(std::size_t number) { return names_.emplace_back("redline:value:" + std::to_string(number)); }

  std::vector<std::string> names_;
  std::vector<std::vector<std::string>> values_;
};

class limited_toml : public CLI::ConfigTOML {
 public:
  limited_toml(std::shared_ptr<config_lines> lines, CLI::App& app) : lines_(std::move(lines)), app_(&app) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override {
    std::string text(file_bytes_max + 1, '\0');
    input.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(input.gcount()));
    *lines_ = read_config_lines(text);
    if (lines_->complaint) throw CLI::ConfigError(*lines_->complaint);
    take_environment(*app_);
    hidden_values hidden;
    std::istringstream checked(hidden.hide(text));
    auto found = CLI::ConfigTOML::from_config(checked);
    hidden.put_back(found);
    return found;
  }

 private:
  std::shared_ptr<config_lines> lines_;
  CLI::App* app_;
};

/// The parser's words in ours.
std::string reword(const std::string& complaint) {
  std::smatch part;
  if (std::regex_match(complaint, part, std::regex("Value (.*) not in range (\\S+) to (\\S+)"))) {
    return "expected a number from " + part.str(2) + " to " + part.str(3);
  }
  if (std::regex_match(complaint, part, std::regex("(.*) not in \\{(.*)\\}"))) return "expected one of " + part.str(2);
  return complaint;
}

}  // namespace

config_lines read_config_lines(const std::string& text) {
  config_lines out;
  const auto complain = [&](std::size_t line, const std::string& why) {
    out.complaint = "line " + std::to_string(line) + ": " + why;
  };
  if (text.size() > file_bytes_max) {
    out.complaint = "expected at most " + std::to_string(file_bytes_max) + " bytes, found more";
    return out;
  }
  std::istringstream input(text);
  std::string section;
  std::size_t number = 0;
  for (std::string line; !out.complaint && std::getline(input, line);) {
    ++number;
    if (line.size() > line_bytes_max) {
      complain(number, "expected at most " + std::to_string(line_bytes_max) + " bytes in a line, found " +
                           std::to_string(line.size()));
      break;
    }
    line = trimmed(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    const bool opens_section = line.front() == '[' && line.find('=') == std::string::npos;
    if (opens_section && line.back() != ']') {
      complain(number, "expected a section such as [serve], found " + quote_bytes(line, shown_bytes_max));
    } else if (opens_section) {
      section = trimmed(std::string_view(line).substr(1, line.size() - 2));
      out.entries.push_back({number, section, {}, {}});
    } else {
      const auto equals = line.find('=');
      out.entries.push_back({number, section, trimmed(std::string_view(line).substr(0, equals)),
                             equals == std::string::npos ? "" : trimmed(std::string_view(line).substr(equals + 1))});
    }
    if (!out.complaint && (is_too_deep(section) || is_too_deep(out.entries.back().key))) {
      complain(number, "expected names of at most " + std::to_string(nesting_max) + " parts, found " +
                           quote_bytes(line, shown_bytes_max));
    }
  }
  return out;
}

void config_file::attach(CLI::App& app) {
  app_ = &app;
  app.config_formatter(std::make_shared<limited_toml>(lines_, app));
}

std::string config_file::place(const config_entry& entry) const {
  const auto show = [](const std::string& text) { return escape_bytes(text, shown_bytes_max); };
  const std::string what =
      entry.key.empty() ? "[" + show(entry.section) + "]" : show(entry.key) + " = " + show(entry.value);
  return app_->get_config_ptr()->as<std::string>() + ":" + std::to_string(entry.line) + ": " + what + ": ";
}

std::string config_file::where(const std::string& section, const std::string& key) const {
  const std::string full = section.empty() ? key : section + "." + key;
  const auto at = std::find_if(lines_->entries.rbegin(), lines_->entries.rend(), [&](const config_entry& e) {
    return (e.section.empty() ? e.key : e.section + "." + e.key) == full;
  });
  const std::string path = app_->get_config_ptr()->as<std::string>();
  return at == lines_->entries.rend() ? path : path + ":" + std::to_string(at->line);
}

std::string environment_name(std::string_view option) {
  std::string name = "REDLINE_" + std::string(option);
  std::replace(name.begin(), name.end(), '-', '_');
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::optional<std::string> config_file::explain(const std::string& what, std::span<char* const> arguments,
                                                const suggester& did_you_mean) const {
  if (lines_->complaint) {
    if (what != *lines_->complaint) return std::nullopt;
    return app_->get_config_ptr()->as<std::string>() + ": " + what;
  }
  constexpr std::string_view unknown = "INI was not able to parse ";
  if (what.starts_with(unknown)) {
    std::string name = what.substr(unknown.size());
    if (name.ends_with(".++") || name.ends_with(".--")) name.resize(name.size() - 3);
    for (const config_entry& e : lines_->entries) {
      const std::string full = e.section.empty() ? e.key : e.section + (e.key.empty() ? "" : "." + e.key);
      if (full != name) continue;
      if (e.key.empty()) return place(e) + "expected the name of a command";
      return place(e) + "expected an option of the command (its --help lists them), without the '--'" +
             did_you_mean(e.section, e.key);
    }
    return std::nullopt;
  }
  const auto colon = what.find(": ");
  if (!what.starts_with("--") || colon == std::string::npos) return std::nullopt;
  const std::string flag = what.substr(0, colon);
  const auto is_it = [&](const char* argument) {
    return argument == flag || std::string_view(argument).starts_with(flag + "=");
  };
  if (std::any_of(arguments.begin(), arguments.end(), is_it)) return std::nullopt;
  // The environment goes before the file.
  const std::string variable = environment_name(std::string_view(flag).substr(2));
  if (const char* value = std::getenv(variable.c_str()); value != nullptr && *value != '\0') {
    return variable + " in the environment: " + reword(what.substr(colon + 2));
  }
  const auto at = std::find_if(lines_->entries.rbegin(), lines_->entries.rend(),
                               [&](const config_entry& e) { return "--" + e.key == flag; });
  if (at == lines_->entries.rend()) return std::nullopt;
  return place(*at) + reword(what.substr(colon + 2));
}

}  // namespace redline::actors::cli
