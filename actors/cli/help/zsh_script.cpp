#include "actors/cli/help/shell_script.hpp"

namespace redline::actors::cli {
namespace {

std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '[' || c == ']' || c == ':') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

std::string zsh_action(const argument_text& a) {
  switch (a.kind) {
    case value_kind::choice:
      return "(" + joined(a.choices) + ")";
    case value_kind::file:
      return "_files";
    case value_kind::folder:
      return "_files -/";
    default:
      return " ";
  }
}

std::string zsh_argument(const argument_text& a, std::size_t place) {
  if (a.is_positional()) {
    return quoted((a.repeated ? "*" : std::to_string(place)) + ":" + zsh_text(a.place) + ":" + zsh_action(a));
  }
  const std::string what =
      a.kind == value_kind::none ? std::string() : ":" + zsh_text(a.flags.back().substr(2)) + ":" + zsh_action(a);
  std::string out;
  for (const std::string& flag : a.flags) {
    const bool is_long = flag.starts_with("--");
    const std::string before = a.repeated ? "*" : a.flags.size() > 1 ? "(" + joined(a.flags) + ")" : "";
    const std::string after = a.kind == value_kind::none ? "" : is_long ? "=" : "+";
    out += (out.empty() ? "" : " \\\n    ") +
           quoted(before + flag + after + "[" + zsh_text(short_help(a.help)) + "]" + what);
  }
  return out;
}

}  // namespace

std::string zsh_script(const command_text& program) {
  std::string out = "#compdef " + program.name + "\n# Completes " + program.name + " in zsh; made by '" + program.name +
                    " completions zsh'.\n";
  for_each_command(program, [&](const command_text& c, const std::string& path, const auto& arguments) {
    const std::string name = function_name(program.name, path);
    out += name + "() {\n";
    if (!c.commands.empty()) {
      out += "  local curcontext=\"$curcontext\" state line\n  typeset -A opt_args\n  local -a commands=(\n";
      for (const command_text& sub : c.commands)
        out += "    " + quoted(zsh_text(sub.name) + ":" + short_help(sub.help)) + "\n";
      out += "  )\n";
    }
    if (c.hands_over) {
      out += "  _files\n}\n";
      return;
    }
    out += std::string("  _arguments -s") + (c.commands.empty() ? "" : " -C");
    std::size_t place = 0;
    for (const argument_text& a : arguments) {
      if (a.is_positional()) ++place;
      out += " \\\n    " + zsh_argument(a, place);
    }
    if (!c.commands.empty()) {
      out +=
          " \\\n    '1: :->command' \\\n    '*:: :->arguments'\n  case $state in\n"
          "    command) _describe -t commands 'command' commands ;;\n    arguments)\n      case $words[1] in\n";
      for (const command_text& sub : c.commands) {
        out += "        " + sub.name + ") " +
               function_name(program.name, path.empty() ? sub.name : path + " " + sub.name) + " ;;\n";
      }
      out += "      esac ;;\n  esac";
    }
    out += "\n}\n";
  });
  const std::string name = function_name(program.name, "");
  return out + "if [ \"$funcstack[1]\" = " + name + " ]; then\n  " + name + " \"$@\"\nelse\n  compdef " + name + " " +
         program.name + "\nfi\n";
}

}  // namespace redline::actors::cli
