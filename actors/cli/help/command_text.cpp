#include "actors/cli/help/command_text.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

namespace redline::actors::cli {
namespace {

constexpr std::size_t short_help_max = 72;

/// Parses the parser's description of a type and its checks: "TEXT:{a,b}", "TEXT:FILE|...", "UINT:INT in [1 - 8]".
void read_type(const std::string& type, argument_text& into) {
  const auto open = type.find('{');
  const auto close = type.rfind('}');
  const auto names = [&](const char* what) { return type == what || type.find(std::string(":") + what) < type.size(); };
  if (open != std::string::npos && close != std::string::npos && open < close) {
    into.kind = value_kind::choice;
    std::istringstream all(type.substr(open + 1, close - open - 1));
    for (std::string one; std::getline(all, one, ',');) into.choices.push_back(one);
  } else if (names("FILE")) {
    into.kind = value_kind::file;
  } else if (names("DIR")) {
    into.kind = value_kind::folder;
  } else if (type.starts_with("UINT") || type.starts_with("INT") || type.starts_with("FLOAT")) {
    into.kind = value_kind::number;
  } else {
    into.kind = value_kind::text;
  }
}

argument_text describe(const CLI::Option& option) {
  argument_text out;
  for (const std::string& name : option.get_snames()) out.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.flags.push_back("--" + name);
  if (out.flags.empty()) out.place = option.get_name(true);
  if (option.get_items_expected_max() > 0) read_type(option.get_type_name(), out);
  out.help = option.get_description();
  out.group = option.get_group();
  out.preset = option.get_default_str();
  out.variable = option.get_envname();
  out.required = option.get_required();
  out.repeated = option.get_items_expected_max() > 1;
  return out;
}

}  // namespace

std::string argument_text::value() const {
  switch (kind) {
    case value_kind::none:
      return {};
    case value_kind::text:
      return "TEXT";
    case value_kind::number:
      return "N";
    case value_kind::file:
      return "FILE";
    case value_kind::folder:
      return "FOLDER";
    case value_kind::choice:
      break;
  }
  std::string all;
  for (const std::string& one : choices) all += (all.empty() ? "" : "|") + one;
  return all;
}

const command_text* command_text::find(const std::string& command) const {
  const auto at = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c.name == command; });
  return at == commands.end() ? nullptr : &*at;
}

command_text describe(const CLI::App& app) {
  command_text out;
  out.name = app.get_name();
  out.help = app.get_description();
  out.hands_over = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) out.arguments.push_back(describe(*option));
  }
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!sub->get_group().empty()) out.commands.push_back(describe(*sub));
  }
  return out;
}

std::string short_help(const std::string& help) {
  std::string out = help.substr(0, std::min({help.find("; "), help.find(". "), help.find(" (")}));
  if (out.size() <= short_help_max) return out;
  const auto end = out.rfind(' ', short_help_max);
  return out.substr(0, end == std::string::npos ? short_help_max : end) + " ...";
}

}  // namespace redline::actors::cli
