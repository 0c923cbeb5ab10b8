#include "actors/cli/flags/config_print.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "actors/cli/flags/config_text.hpp"
#include "runtime/base/hex.hpp"
#include "runtime/base/utf8.hpp"

namespace redline::actors::cli {
namespace {

constexpr std::size_t help_column_max = 116;
constexpr std::size_t origin_bytes_max = 400;

bool is_given_as_flag(const CLI::App& c, const CLI::Option& option) {
  const auto& order = c.parse_order();
  return std::find(order.begin(), order.end(), &option) != order.end();
}

bool is_in_environment(const CLI::Option& option) {
  const char* value = option.get_envname().empty() ? nullptr : std::getenv(option.get_envname().c_str());
  return value != nullptr && *value != '\0';
}

/// The right side of the line; nullopt if there is no value.
std::optional<std::string> value_of(const CLI::Option& option) {
  const bool is_list = option.get_items_expected_max() > 1;
  if (option.get_items_expected_max() == 0) return option.count() > 0 && option.as<bool>() ? "true" : "false";
  if (option.count() > 0)
    return is_list ? toml_array(option.reduced_results()) : toml_scalar(option.reduced_results()[0]);
  std::string usual = option.get_default_str();
  if (usual.empty()) return std::nullopt;
  if (!is_list || !usual.starts_with('[') || !usual.ends_with(']')) return toml_scalar(usual);
  std::vector<std::string> items;
  std::istringstream in(usual.substr(1, usual.size() - 2));
  for (std::string one; std::getline(in, one, ',');) items.push_back(one);
  return toml_array(items);
}

std::string origin_of(const CLI::App& c, const CLI::Option& option, const std::string& section, const std::string& key,
                      const config_file& file, bool is_needed) {
  if (is_given_as_flag(c, option)) return option.get_positional() ? "argument" : "flag --" + key;
  if (option.count() == 0)
    return option.get_default_str().empty() && option.get_items_expected_max() > 0
               ? std::string(is_needed ? "not given, but required by the command" : "not given")
               : "default";
  if (is_in_environment(option)) return "environment " + option.get_envname();
  return "file " + escape_bytes(file.where(section, key), origin_bytes_max);
}

/// Formats a help text as comment lines.
std::string comment_of(const std::string& help) {
  std::string out = "#";
  std::size_t column = 1;
  std::istringstream words(help);
  for (std::string word; words >> word;) {
    if (column + 1 + word.size() > help_column_max && column > 1) {
      out += "\n#";
      column = 1;
    }
    out += " " + word;
    column += 1 + word.size();
  }
  return out + "\n";
}

void print_options(const CLI::App& c, const std::string& section, const config_file& file,
                   const std::set<const CLI::Option*>& needed, std::string& out) {
  for (const CLI::Option* option : c.get_options()) {
    if (option->get_group().empty() || !option->get_configurable() || option == c.get_help_ptr()) continue;
    const std::string key = option->get_positional() ? option->get_name(true) : option->get_lnames().front();
    if (key == "version" && c.get_parent() == nullptr) continue;
    const auto value = value_of(*option);
    const std::string origin = "  # " + origin_of(c, *option, section, key, file, needed.contains(option)) + "\n";
    out += "\n" + comment_of(option->get_description());
    const std::string line = key + " = " + value.value_or("");
    if (!value)
      out += "# " + line + origin;
    else if (line.size() + origin.size() > config_line_bytes_max || utf8::valid_prefix_bytes(line) < line.size())
      out += "# " + key + " =  # the value is too long for a line of a configuration file, or not UTF-8\n";
    else
      out += line + origin;
  }
}

}  // namespace

std::string print_config(const CLI::App& program, const config_file& file, const std::set<const CLI::Option*>& needed) {
  std::string command;
  std::string section;
  const CLI::App* last = &program;
  while (!last->get_subcommands().empty()) {
    last = last->get_subcommands().front();
    command += " " + last->get_name();
    section += (section.empty() ? "" : ".") + last->get_name();
  }
  std::string out = "# The options of '" + program.get_name() + command +
                    "' and the sources of their values. Saved as FILE, they are read by\n# '" + program.get_name() +
                    " --config FILE" + command + "'.\n";
  print_options(program, "", file, needed, out);
  if (last == &program) return out;
  out += "\n[" + section + "]\n";
  print_options(*last, section, file, needed, out);
  return out;
}

}  // namespace redline::actors::cli
